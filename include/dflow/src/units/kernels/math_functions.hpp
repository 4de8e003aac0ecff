#pragma once

/// CPU kernels of the standard op table.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/math/list.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(UnaryOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(UnaryGradientOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(TrigonometricOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(SpecialOps, Cpu);

}  // namespace dflow
