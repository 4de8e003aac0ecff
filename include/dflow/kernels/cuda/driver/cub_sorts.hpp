#pragma once

#include <dflow/kernels/cuda/driver/sorts.hpp>

namespace dflow::cuda {

/// CUB, the same for all who ask. In the library's component `cuda`.
Sorts& cub_sorts() noexcept;

}  // namespace dflow::cuda
