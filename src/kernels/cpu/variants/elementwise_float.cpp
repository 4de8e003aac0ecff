#include <dflow/kernels/cpu/raw/variants/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const FloatElementwiseLoops<float>& table();
template const FloatElementwiseLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
