#pragma once

#include <dflow/kernels/cuda/driver/products.hpp>
#include <dflow/kernels/cuda/memory/library_plans.hpp>

#include <cstddef>
#include <string_view>

namespace dflow::cuda {

struct ProductPlanning {
  using Call = ProductCall;
  using Handle = ProductPlanHandle;

  static constexpr std::string_view doing = "choosing how a product is computed";
  static constexpr bool may_decline = false;

  static ErrorCode make(const DeviceCore& core, const Call& call, std::size_t max_workspace_bytes, Handle& handle,
                        std::size_t& workspace_bytes) noexcept {
    return core.driver().products().make_product_plan(core.device(), call, max_workspace_bytes, handle,
                                                      workspace_bytes);
  }
  static void destroy(const DeviceCore& core, Handle handle) noexcept {
    static_cast<void>(core.driver().products().destroy_product_plan(core.device(), handle));
  }
};
using ProductPlans = LibraryPlans<ProductPlanning>;
inline constexpr std::size_t max_product_workspace_bytes = std::size_t{1} << 25;

}  // namespace dflow::cuda
