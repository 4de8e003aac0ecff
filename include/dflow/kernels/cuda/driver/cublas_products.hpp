#pragma once

#include <dflow/kernels/cuda/driver/products.hpp>

namespace dflow::cuda {

/// cuBLASLt: every caller gets the same object. In the library's component `cuda`.
Products& cublas_products() noexcept;
/// The `ErrorCode` for a `cublasStatus_t`, as the tables of libraries use it. In the component, too.
ErrorCode code_of_cublas(int status) noexcept;

}  // namespace dflow::cuda
