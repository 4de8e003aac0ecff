#pragma once

#include <dflow/kernels/cuda/memory/device_core.hpp>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace dflow::cuda {

/// The plans by which a library of a GPU computes calls. To find a plan takes longer than to compute a small call, so
/// the plans that were asked for last are kept, at most `max_plans`. `Planning` has the types `Call` and `Handle`,
/// the name of the action (`doing`), and the functions that make and destroy plans.
///
/// Thread safety: all functions may be called from any thread.
template <class Planning>
class LibraryPlans {
 public:
  using Call = typename Planning::Call;
  using Handle = typename Planning::Handle;

  static constexpr std::size_t max_plans = 1024;

  /// Goes with the last holder.
  class Plan {
   public:
    Plan(std::shared_ptr<DeviceCore> core, Handle handle, std::size_t bytes) noexcept
        : workspace_bytes(bytes), core_(std::move(core)), handle_(handle) {}
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() {
      if (is_possible()) Planning::destroy(*core_, handle_);
    }
    Handle handle() const noexcept { return handle_; }
    /// False if the library cannot compute the call and `Planning::may_decline`.
    bool is_possible() const noexcept { return handle_ != Handle::none; }

    const std::size_t workspace_bytes;

   private:
    const std::shared_ptr<DeviceCore> core_;
    const Handle handle_;
  };

  LibraryPlans(std::shared_ptr<DeviceCore> core, std::size_t max_workspace_bytes, std::size_t most = max_plans)
      : core_(std::move(core)), max_workspace_bytes_(max_workspace_bytes), most_(most) {}

  /// Throws the library's error: Unimplemented if it cannot compute the call, unless it may decline.
  std::shared_ptr<const Plan> find(const Call& call) {
    std::shared_ptr<const Plan> plan = find_or_make(call);
    core_->hold(plan);
    return plan;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return used_.size();
  }

 private:
  using Used = std::list<std::pair<const Call, std::shared_ptr<const Plan>>>;

  std::shared_ptr<const Plan> find_or_make(const Call& call) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = plans_.find(call); found != plans_.end()) {
        used_.splice(used_.begin(), used_, found->second);
        return found->second->second;
      }
    }
    // Beside others: it takes milliseconds. Two may make the same one.
    Handle handle = Handle::none;
    std::size_t workspace_bytes = 0;
    const ErrorCode code = Planning::make(*core_, call, max_workspace_bytes_, handle, workspace_bytes);
    if (code != ErrorCode::not_supported || !Planning::may_decline) core_->require_ok(code, Planning::doing);
    std::shared_ptr<const Plan> plan = own(handle, workspace_bytes);
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

  /// The handle is destroyed if there is no memory to hold it.
  std::shared_ptr<const Plan> own(Handle handle, std::size_t workspace_bytes) {
    try {
      return std::make_shared<const Plan>(core_, handle, workspace_bytes);
    } catch (...) {
      if (handle != Handle::none) Planning::destroy(*core_, handle);
      throw;
    }
  }

  const std::shared_ptr<DeviceCore> core_;
  const std::size_t max_workspace_bytes_;
  const std::size_t most_;
  mutable std::mutex mutex_;
  Used used_;  ///< the last used first
  std::map<Call, typename Used::iterator> plans_;
};

}  // namespace dflow::cuda
