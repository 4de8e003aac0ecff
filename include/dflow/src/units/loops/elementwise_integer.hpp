#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template struct LoopsFor<std::int8_t>;
template struct LoopsFor<std::int16_t>;
template struct LoopsFor<std::int32_t>;
template struct LoopsFor<std::int64_t>;
template struct LoopsFor<std::uint8_t>;
template struct LoopsFor<std::uint16_t>;
template struct LoopsFor<std::uint32_t>;
template struct LoopsFor<std::uint64_t>;
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
