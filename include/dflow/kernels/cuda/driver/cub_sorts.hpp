#pragma once

#include <dflow/kernels/cuda/driver/sorts.hpp>

namespace dflow::cuda {

/// CUB: every caller gets the same object. In the library's component `cuda`.
Sorts& cub_sorts() noexcept;

}  // namespace dflow::cuda
