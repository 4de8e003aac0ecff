#include "cuda/fake_convolutions.hpp"

#include "cuda/fake_driver.hpp"
#include "cuda/recorded_convolution.hpp"

#include <dflow/base/str_cat.hpp>

#include <string>

namespace dflow::testing {

using namespace cuda;

std::vector<ConvolutionCall> FakeConvolutions::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}
std::uint64_t FakeConvolutions::num_declined() const {
  const std::lock_guard lock(mutex_);
  return num_declined_;
}
std::uint64_t FakeConvolutions::num_issued() const {
  const std::lock_guard lock(mutex_);
  return num_issued_;
}
std::size_t FakeConvolutions::num_alive() const {
  const std::lock_guard lock(mutex_);
  return plans_.size();
}

ErrorCode FakeConvolutions::make_convolution_plan(int device, const ConvolutionCall& call,
                                                  std::size_t max_workspace_bytes, ConvolutionPlanHandle& plan,
                                                  std::size_t& workspace_bytes) noexcept {
  if (const ErrorCode code = driver_.count_call(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    driver_.report(str_cat("a convolution: ", wrong));
    return ErrorCode::invalid_value;
  }
  const std::lock_guard lock(mutex_);
  const std::uintptr_t handle = next_handle_++;
  workspace_bytes = handle % 3 == 0 ? 0 : 512 * (handle % 5 + 1);  // some want none
  if (call.dilation_rows == 3 || call.dilation_cols == 3 || workspace_bytes > max_workspace_bytes) {
    ++num_declined_;
    return ErrorCode::not_supported;
  }
  plans_.emplace(handle, Plan{call, device, workspace_bytes});
  made_.push_back(call);
  plan = static_cast<ConvolutionPlanHandle>(handle);
  return ErrorCode::ok;
}

ErrorCode FakeConvolutions::destroy_convolution_plan(int device, ConvolutionPlanHandle plan) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(static_cast<std::uintptr_t>(plan));
  if (found == plans_.end() || found->second.device != device) {
    driver_.report("a plan of a convolution is destroyed that there is not");
    return ErrorCode::invalid_value;
  }
  plans_.erase(found);
  return ErrorCode::ok;
}

ErrorCode FakeConvolutions::run_convolution(int device, ConvolutionPlanHandle handle,
                                            const ConvolutionOperands& operands, std::span<const MemoryUse> uses,
                                            StreamHandle stream) noexcept {
  Plan plan;
  {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(static_cast<std::uintptr_t>(handle));
    if (found == plans_.end() || found->second.device != device) {
      driver_.report("a convolution is computed by a plan that its device does not have");
      return ErrorCode::invalid_handle;
    }
    plan = found->second;
    ++num_issued_;
  }
  if (operands.workspace_bytes < plan.workspace_bytes ||
      reinterpret_cast<std::uintptr_t>(operands.workspace) % 256 != 0) {
    driver_.report("a convolution does not get the workspace that it asked for");
  }
  const std::vector<MemoryUse> touched = memory_of(plan.call, operands);
  for (const MemoryUse& each : touched) {
    if (!is_said(each, uses)) driver_.report("a convolution touches memory that was not said of it");
    if (reinterpret_cast<std::uintptr_t>(each.block) % static_cast<std::uintptr_t>(plan.call.alignment_bytes) != 0) {
      driver_.report("an operand of a convolution is not aligned as its plan says");
    }
  }
  return driver_.issue(device, stream, touched, [call = plan.call, operands] { compute_convolution(call, operands); });
}

}  // namespace dflow::testing
