#include <dflow/kernels/cpu/raw/variants/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const FloatElementwiseLoops<float>& table();
template const FloatElementwiseLoops<double>& table();
template const OrderComparisonLoops<float>& table();
template const OrderComparisonLoops<double>& table();
template const EqualityComparisonLoops<float>& table();
template const EqualityComparisonLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
