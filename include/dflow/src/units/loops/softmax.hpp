#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/softmax_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SoftmaxLoops<float>& table();
template const SoftmaxLoops<double>& table();
template const CrossEntropyLoops<float>& table();
template const CrossEntropyLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
