#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/math_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const MathLoops<float>& table();
template const MathLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
