#pragma once

#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace dflow::detail {

/// The container of that name on the device that a kernel is made for. Errors: FailedPrecondition if the device has
/// none.
std::shared_ptr<ResourceContainer> container_of(const KernelInit& init, std::string_view name);

/// A resource of a container that a kernel keeps from run to run: a pointer, or a handle. It is looked up once more
/// when the container has dropped resources since, so that after a reset all kernels find the same new one.
///
/// Thread safety: all functions may be called from any thread.
template <class Kept>
class KeptResource {
 public:
  explicit KeptResource(std::shared_ptr<ResourceContainer> container) : container_(std::move(container)) {}

  /// `find(container)` of now; errors are its own.
  template <class Find>
  Kept get(const Find& find) const {
    const std::uint64_t now = container_->generation();
    {
      const SpinGuard guard(lock_);
      if (is_found_ && generation_ == now) return kept_;
    }
    Kept found = find(*container_);
    Kept replaced;  // freed without the lock
    const SpinGuard guard(lock_);
    replaced = std::exchange(kept_, found);
    generation_ = now;
    is_found_ = true;
    return found;
  }

 private:
  const std::shared_ptr<ResourceContainer> container_;
  mutable SpinLock lock_;
  mutable Kept kept_;
  mutable std::uint64_t generation_ = 0;
  mutable bool is_found_ = false;
};

}  // namespace dflow::detail
