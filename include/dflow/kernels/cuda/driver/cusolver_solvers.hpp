#pragma once

#include <dflow/kernels/cuda/driver/solvers.hpp>

namespace dflow::cuda {

/// cuSOLVER and cuBLAS, the same for all who ask. In the library's component `cuda`.
Solvers& cusolver_solvers() noexcept;

}  // namespace dflow::cuda
