#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const OrderLoops<int32_t>& table();
template const OrderLoops<int64_t>& table();
template const OrderLoops<uint32_t>& table();
template const OrderLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
