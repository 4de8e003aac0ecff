#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<ComplexParts<float>>& table();
template const SumLoops<ComplexParts<double>>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
