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
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
