#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/cast_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const CastLoops<HalfBits>& table();
template const CastLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
