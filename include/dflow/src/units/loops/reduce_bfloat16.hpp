#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<BFloat16Bits>& table();
template const OrderLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
