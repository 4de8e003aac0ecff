#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/channel_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const BiasLoops<float>& table();
template const BiasLoops<double>& table();
template const BiasLoops<HalfBits>& table();
template const BiasLoops<BFloat16Bits>& table();
template const BiasLoops<uint8_t>& table();
template const BiasLoops<uint16_t>& table();
template const BiasLoops<uint32_t>& table();
template const BiasLoops<uint64_t>& table();
template const BiasLoops<ComplexParts<float>>& table();
template const BiasLoops<ComplexParts<double>>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
