#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/window_gradient_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const WindowGradientLoops<float>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
