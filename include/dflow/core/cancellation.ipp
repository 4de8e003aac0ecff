#pragma once

#include <dflow/core/cancellation.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace dflow {

/// Callbacks wait in order of their ids. The cancelling thread takes them out one by one and calls them without the
/// lock.
class detail::CancellationState : public detail::CancellationFlag {
 public:
  bool cancel(Status status) {
    std::unique_lock lock(mutex_);
    if (is_cancelled.load(std::memory_order_relaxed)) return false;
    status_ = status.ok() ? cancelled("cancelled") : std::move(status);
    is_cancelled.store(true, std::memory_order_release);
    canceller_ = std::this_thread::get_id();
    while (!waiting_.empty()) {
      // The front, so that callbacks run in order; taken out before it runs, so that it may deregister itself and
      // others.
      Entry entry = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      running_id_ = entry.id;
      lock.unlock();
      entry.callback(status_);
      entry.callback = nullptr;
      lock.lock();
      running_id_ = 0;
      returned_.notify_all();
    }
    return true;
  }

  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

  /// Registers and returns an id, or returns 0 and leaves `callback` with the caller if this is cancelled already.
  std::uint64_t add(CancellationToken::Callback& callback) {
    std::lock_guard lock(mutex_);
    if (is_cancelled.load(std::memory_order_relaxed)) return 0;
    waiting_.push_back({++last_id_, std::move(callback)});
    return last_id_;
  }

  /// True if the callback was taken out before it was called.
  bool remove(std::uint64_t id, bool wait_while_running) {
    CancellationToken::Callback removed;  // destroyed after the lock is released
    std::unique_lock lock(mutex_);
    const auto at = std::lower_bound(waiting_.begin(), waiting_.end(), id,
                                     [](const Entry& e, std::uint64_t i) { return e.id < i; });
    if (at != waiting_.end() && at->id == id) {
      removed = std::move(at->callback);
      waiting_.erase(at);
      return true;
    }
    if (wait_while_running && canceller_ != std::this_thread::get_id()) {
      returned_.wait(lock, [&] { return running_id_ != id; });
    }
    return false;
  }

 private:
  struct Entry {
    std::uint64_t id;
    CancellationToken::Callback callback;
  };

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  Status status_;
  std::vector<Entry> waiting_;
  std::uint64_t last_id_ = 0;
  std::uint64_t running_id_ = 0;
  std::thread::id canceller_;
};

DFLOW_INLINE CancellationRegistration::CancellationRegistration(std::shared_ptr<detail::CancellationState> state,
                                                                std::uint64_t id) noexcept
    : state_(std::move(state)), id_(id) {}

DFLOW_INLINE CancellationRegistration& CancellationRegistration::operator=(CancellationRegistration&& other) noexcept {
  if (this != &other) {
    deregister();
    state_ = std::move(other.state_);
    id_ = other.id_;
  }
  return *this;
}

DFLOW_INLINE void CancellationRegistration::deregister() noexcept {
  if (const auto state = std::exchange(state_, nullptr)) state->remove(id_, true);
}

DFLOW_INLINE bool CancellationRegistration::try_deregister() noexcept {
  const auto state = std::exchange(state_, nullptr);
  return state != nullptr && state->remove(id_, false);
}

DFLOW_INLINE CancellationToken::CancellationToken(const std::shared_ptr<detail::CancellationState>& state) noexcept
    : state_(state) {}

DFLOW_INLINE detail::CancellationState& CancellationToken::state() const noexcept {
  return static_cast<detail::CancellationState&>(*state_);
}

DFLOW_INLINE Status CancellationToken::status() const { return is_cancelled() ? state().status() : Status(); }

DFLOW_INLINE CancellationRegistration CancellationToken::on_cancel(Callback callback) const {
  if (state_ == nullptr) return {};
  const std::uint64_t id = state().add(callback);
  if (id == 0) {
    callback(state().status());
    return {};
  }
  return {std::static_pointer_cast<detail::CancellationState>(state_), id};
}

DFLOW_INLINE CancellationSource::CancellationSource() : state_(std::make_shared<detail::CancellationState>()) {}

DFLOW_INLINE CancellationSource::CancellationSource(const CancellationToken& parent) : CancellationSource() {
  if (!parent.can_be_cancelled()) return;
  // Weak: the registration is this source's, so the parent must not keep the source alive.
  parent_ =
      std::make_shared<CancellationRegistration>(parent.on_cancel([weak = std::weak_ptr(state_)](const Status& status) {
        if (const auto state = weak.lock()) state->cancel(status);
      }));
}

DFLOW_INLINE bool CancellationSource::is_cancelled() const noexcept {
  return state_->is_cancelled.load(std::memory_order_acquire);
}

DFLOW_INLINE bool CancellationSource::cancel(Status status) { return state_->cancel(std::move(status)); }
DFLOW_INLINE bool CancellationSource::cancel() { return cancel(Status()); }

}  // namespace dflow
