#pragma once

#include <dflow/kernels/cuda/products/product_plans.hpp>

#include <utility>

namespace dflow::cuda {

DFLOW_INLINE ProductPlans::Plan::~Plan() {
  static_cast<void>(core_->driver().products().destroy_product_plan(core_->device(), handle_));
}

DFLOW_INLINE std::shared_ptr<const ProductPlans::Plan> ProductPlans::find(const ProductCall& call) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(call); found != plans_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return found->second->second;
    }
  }
  // Beside others: it takes milliseconds. Two may make the same one.
  ProductPlanHandle handle = ProductPlanHandle::none;
  std::size_t workspace_bytes = 0;
  core_->require_ok(
      core_->driver().products().make_product_plan(core_->device(), call, max_workspace_bytes, handle, workspace_bytes),
      "choosing how a product is computed");
  auto plan = std::make_shared<const Plan>(core_, handle, workspace_bytes);
  std::shared_ptr<const Plan> dropped;
  const std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(call); found != plans_.end()) return found->second->second;
  used_.emplace_front(call, plan);
  plans_.emplace(call, used_.begin());
  if (used_.size() > most_) {
    dropped = std::move(used_.back().second);
    plans_.erase(used_.back().first);
    used_.pop_back();
  }
  return plan;
}

DFLOW_INLINE std::size_t ProductPlans::size() const {
  const std::lock_guard lock(mutex_);
  return used_.size();
}

}  // namespace dflow::cuda
