#include <dflow/kernels/cpu/raw/variants/elementwise_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const WrappingElementwiseLoops<uint8_t>& table();
template const WrappingElementwiseLoops<uint16_t>& table();
template const WrappingElementwiseLoops<uint32_t>& table();
template const WrappingElementwiseLoops<uint64_t>& table();
template const OrderedElementwiseLoops<signed char>& table();
template const OrderedElementwiseLoops<short>& table();
template const OrderedElementwiseLoops<int32_t>& table();
template const OrderedElementwiseLoops<int64_t>& table();
template const OrderedElementwiseLoops<uint8_t>& table();
template const OrderedElementwiseLoops<uint16_t>& table();
template const OrderedElementwiseLoops<uint32_t>& table();
template const OrderedElementwiseLoops<uint64_t>& table();
template const OrderComparisonLoops<signed char>& table();
template const OrderComparisonLoops<short>& table();
template const OrderComparisonLoops<int32_t>& table();
template const OrderComparisonLoops<int64_t>& table();
template const OrderComparisonLoops<uint8_t>& table();
template const OrderComparisonLoops<uint16_t>& table();
template const OrderComparisonLoops<uint32_t>& table();
template const OrderComparisonLoops<uint64_t>& table();
template const EqualityComparisonLoops<uint8_t>& table();
template const EqualityComparisonLoops<uint16_t>& table();
template const EqualityComparisonLoops<uint32_t>& table();
template const EqualityComparisonLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
