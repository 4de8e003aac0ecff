#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<float>& table();
template const SumLoops<double>& table();
template const OrderLoops<float>& table();
template const OrderLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
