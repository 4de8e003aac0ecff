#pragma once

#include <dflow/kernels/cuda/driver/convolutions.hpp>

#include <cstddef>
#include <string>

namespace dflow::cuda {

/// cuDNN, the same for all who ask; null where the component was built without it. In the library's component `cuda`.
Convolutions* cudnn_convolutions() noexcept;

/// Plans the call as for a GPU that need not be there, of which cuDNN knows the properties (JSON, as of
/// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR; cuDNN 9.8): what it finds is dropped but for its workspace. not_supported where
/// it finds none, or there is no cuDNN; invalid_value for other properties, and what is no convolution. In the
/// component, too.
ErrorCode plan_for_gpu(const std::string& properties, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                       std::size_t& workspace_bytes) noexcept;

}  // namespace dflow::cuda
