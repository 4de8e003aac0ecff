#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<uint8_t>& table();
template const SumLoops<uint16_t>& table();
template const SumLoops<uint32_t>& table();
template const SumLoops<uint64_t>& table();
template const MeanLoops<std::int8_t>& table();
template const MeanLoops<std::int16_t>& table();
template const MeanLoops<int32_t>& table();
template const MeanLoops<int64_t>& table();
template const MeanLoops<uint8_t>& table();
template const MeanLoops<uint16_t>& table();
template const MeanLoops<uint32_t>& table();
template const MeanLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
