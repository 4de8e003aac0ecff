#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template struct LoopsFor<Half>;
template struct LoopsFor<BFloat16>;
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
