#pragma once

/// CPU kernels of the standard op table.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/math/list.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(BinaryOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(PowerOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(ComparisonOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(LogicalOps, Cpu);

}  // namespace dflow
