#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/pool_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const PoolLoops<std::int8_t>& table();
template const PoolLoops<std::int16_t>& table();
template const PoolLoops<int32_t>& table();
template const PoolLoops<int64_t>& table();
template const PoolLoops<uint8_t>& table();
template const PoolLoops<uint16_t>& table();
template const PoolLoops<uint32_t>& table();
template const PoolLoops<uint64_t>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
