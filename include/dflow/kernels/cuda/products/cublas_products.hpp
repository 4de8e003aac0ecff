#pragma once

#include <dflow/kernels/cuda/products/products.hpp>

namespace dflow::cuda {

/// cuBLASLt, the same for all who ask. In the library's component `cuda`.
Products& cublas_products() noexcept;

}  // namespace dflow::cuda
