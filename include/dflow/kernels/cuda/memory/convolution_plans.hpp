#pragma once

#include <dflow/kernels/cuda/driver/convolutions.hpp>
#include <dflow/kernels/cuda/memory/library_plans.hpp>

#include <cstddef>
#include <string_view>

namespace dflow::cuda {

/// Without cuDNN it declines every call.
struct ConvolutionPlanning {
  using Call = ConvolutionCall;
  using Handle = ConvolutionPlanHandle;

  static constexpr std::string_view doing = "choosing how a convolution is computed";
  static constexpr bool may_decline = true;

  static ErrorCode make(const DeviceCore& core, const Call& call, std::size_t max_workspace_bytes, Handle& handle,
                        std::size_t& workspace_bytes) noexcept {
    Convolutions* const library = core.driver().convolutions();
    if (library == nullptr) return ErrorCode::not_supported;
    return library->make_convolution_plan(core.device(), call, max_workspace_bytes, handle, workspace_bytes);
  }
  static void destroy(const DeviceCore& core, Handle handle) noexcept {
    static_cast<void>(core.driver().convolutions()->destroy_convolution_plan(core.device(), handle));
  }
};
using ConvolutionPlans = LibraryPlans<ConvolutionPlanning>;

}  // namespace dflow::cuda
