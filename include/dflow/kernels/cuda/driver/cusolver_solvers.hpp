#pragma once

#include <dflow/kernels/cuda/driver/solvers.hpp>

namespace dflow::cuda {

/// cuSOLVER and cuBLAS: every caller gets the same object. In the library's component `cuda`.
Solvers& cusolver_solvers() noexcept;

}  // namespace dflow::cuda
