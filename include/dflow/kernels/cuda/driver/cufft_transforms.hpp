#pragma once

#include <dflow/kernels/cuda/driver/transforms.hpp>

namespace dflow::cuda {

/// cuFFT: every caller gets the same object. In the library's component `cuda`.
Transforms& cufft_transforms() noexcept;

}  // namespace dflow::cuda
