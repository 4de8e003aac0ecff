#pragma once

#include <dflow/kernels/cuda/driver/products.hpp>

namespace dflow::cuda {

/// cuBLASLt, the same for all who ask. In the library's component `cuda`.
Products& cublas_products() noexcept;
/// What a `cublasStatus_t` is to the tables of libraries. In the component, too.
ErrorCode code_of_cublas(int status) noexcept;

}  // namespace dflow::cuda
