#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template struct LoopsFor<float>;
template struct LoopsFor<double>;
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
