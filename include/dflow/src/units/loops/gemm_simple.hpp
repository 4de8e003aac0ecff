#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/simple_gemm_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const SimpleGemmLoops<uint8_t>& table();
template const SimpleGemmLoops<uint16_t>& table();
template const SimpleGemmLoops<uint32_t>& table();
template const SimpleGemmLoops<uint64_t>& table();
template const SimpleGemmLoops<ComplexParts<float>>& table();
template const SimpleGemmLoops<ComplexParts<double>>& table();
template const ComplexGemmLoops<float>& table();
template const ComplexGemmLoops<double>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
