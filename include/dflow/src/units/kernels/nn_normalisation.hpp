#pragma once

/// CPU kernels of the standard op table.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/nn/list.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(NormalisationOps, Cpu);

}  // namespace dflow
