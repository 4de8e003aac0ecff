#pragma once

#include <dflow/kernels/cuda/driver/convolutions.hpp>

#include <cstddef>
#include <string>

namespace dflow::cuda {

/// cuDNN: every caller gets the same object. Null if the component was built without cuDNN. In the library's
/// component `cuda`.
Convolutions* cudnn_convolutions() noexcept;

/// Plans the call for a GPU that need not be present. `properties` describes the GPU to cuDNN (JSON, as of
/// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR; cuDNN 9.8). The plan is dropped, and only its workspace is kept.
/// not_supported if cuDNN finds no plan, or there is no cuDNN; invalid_value for other properties, and for a call
/// that is no convolution. In the component, too.
ErrorCode plan_for_gpu(const std::string& properties, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                       std::size_t& workspace_bytes) noexcept;

}  // namespace dflow::cuda
