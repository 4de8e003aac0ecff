#include <dflow/kernels/cpu/raw/variants/reduce_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SumLoops<uint8_t>& table();
template const SumLoops<uint16_t>& table();
template const SumLoops<uint32_t>& table();
template const SumLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
