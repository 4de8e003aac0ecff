#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/softmax_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SoftmaxLoops<HalfBits>& table();
template const SoftmaxLoops<BFloat16Bits>& table();
template const CrossEntropyLoops<HalfBits>& table();
template const CrossEntropyLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
