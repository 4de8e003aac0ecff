#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<HalfBits>& table();
template const OrderLoops<HalfBits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
