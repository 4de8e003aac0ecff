#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/pool_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const PoolLoops<float>& table();
template const PoolLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
