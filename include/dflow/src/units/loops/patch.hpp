#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/depthwise_loops.hpp>
#include <dflow/kernels/cpu/loops/patch_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const PatchLoops<float>& table();
template const PatchLoops<double>& table();
template const DepthwiseLoops<float>& table();
template const DepthwiseLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
