#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/channel_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const BatchNormLoops<float>& table();
template const BatchNormLoops<double>& table();
template const BatchNormLoops<HalfBits>& table();
template const BatchNormLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
