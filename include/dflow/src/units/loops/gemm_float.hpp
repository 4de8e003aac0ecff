#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/gemm_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const GemmLoops<float>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
