#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const OrderLoops<std::int8_t>& table();
template const OrderLoops<std::int16_t>& table();
template const OrderLoops<uint8_t>& table();
template const OrderLoops<uint16_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
