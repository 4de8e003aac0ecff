#pragma once

#include <dflow/kernels/cuda/memory/device_core.hpp>
#include <dflow/kernels/cuda/products/products.hpp>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace dflow::cuda {

/// How the products of a GPU are computed, which takes longer to find out than to compute a small one: the plans that
/// were asked for last, at most `max_plans`.
///
/// Thread safety: all functions may be called from any thread.
class ProductPlans {
 public:
  static constexpr std::size_t max_plans = 1024;
  static constexpr std::size_t max_workspace_bytes = std::size_t{1} << 25;

  /// Goes with the last holder.
  class Plan {
   public:
    Plan(std::shared_ptr<DeviceCore> core, ProductPlanHandle handle, std::size_t bytes) noexcept
        : workspace_bytes(bytes), core_(std::move(core)), handle_(handle) {}
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan();
    ProductPlanHandle handle() const noexcept { return handle_; }

    const std::size_t workspace_bytes;

   private:
    const std::shared_ptr<DeviceCore> core_;
    const ProductPlanHandle handle_;
  };

  explicit ProductPlans(std::shared_ptr<DeviceCore> core, std::size_t most = max_plans)
      : core_(std::move(core)), most_(most) {}

  /// Throws what the library says: Unimplemented where it cannot compute the call.
  std::shared_ptr<const Plan> find(const ProductCall& call);
  std::size_t size() const;

 private:
  using Used = std::list<std::pair<const ProductCall, std::shared_ptr<const Plan>>>;

  const std::shared_ptr<DeviceCore> core_;
  const std::size_t most_;
  mutable std::mutex mutex_;
  Used used_;  ///< the last used first
  std::map<ProductCall, Used::iterator> plans_;
};

}  // namespace dflow::cuda

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cuda/products/product_plans.ipp>
#endif
