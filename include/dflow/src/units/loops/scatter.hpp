#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/update_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const ScatterLoops<float>& table();
template const ScatterLoops<double>& table();
template const ScatterLoops<HalfBits>& table();
template const ScatterLoops<BFloat16Bits>& table();
template const ScatterLoops<ComplexParts<float>>& table();
template const ScatterLoops<ComplexParts<double>>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
