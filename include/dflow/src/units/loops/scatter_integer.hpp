#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/update_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const ScatterLoops<std::int8_t>& table();
template const ScatterLoops<std::int16_t>& table();
template const ScatterLoops<int32_t>& table();
template const ScatterLoops<int64_t>& table();
template const ScatterLoops<uint8_t>& table();
template const ScatterLoops<uint16_t>& table();
template const ScatterLoops<uint32_t>& table();
template const ScatterLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
