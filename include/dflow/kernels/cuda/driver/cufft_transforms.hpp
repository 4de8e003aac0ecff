#pragma once

#include <dflow/kernels/cuda/driver/transforms.hpp>

namespace dflow::cuda {

/// cuFFT, the same for all who ask. In the library's component `cuda`.
Transforms& cufft_transforms() noexcept;

}  // namespace dflow::cuda
