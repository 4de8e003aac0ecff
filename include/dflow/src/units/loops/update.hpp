#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/update_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const UpdateLoops<float>& table();
template const UpdateLoops<double>& table();
template const UpdateLoops<HalfBits>& table();
template const UpdateLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
