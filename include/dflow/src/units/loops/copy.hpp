#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/copy_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {
template const CopyLoops<1>& table();
template const CopyLoops<2>& table();
template const CopyLoops<4>& table();
template const CopyLoops<8>& table();
template const CopyLoops<16>& table();
}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
