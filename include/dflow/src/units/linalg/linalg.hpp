#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/linalg/list.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(LinalgOps, Cpu);

}  // namespace dflow
