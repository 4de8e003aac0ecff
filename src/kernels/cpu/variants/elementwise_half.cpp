#include <dflow/kernels/cpu/raw/variants/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const FloatElementwiseLoops<HalfBits>& table();
template const FloatElementwiseLoops<BFloat16Bits>& table();
template const HalfMathLoops<HalfBits>& table();
template const HalfMathLoops<BFloat16Bits>& table();
template const OrderComparisonLoops<HalfBits>& table();
template const OrderComparisonLoops<BFloat16Bits>& table();
template const EqualityComparisonLoops<HalfBits>& table();
template const EqualityComparisonLoops<BFloat16Bits>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
