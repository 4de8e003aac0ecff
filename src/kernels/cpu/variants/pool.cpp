#include <dflow/kernels/cpu/raw/variants/pool_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const PoolLoops<float>& table();
template const PoolLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
