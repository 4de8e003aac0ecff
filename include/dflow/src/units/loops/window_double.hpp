#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/window_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const WindowLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
