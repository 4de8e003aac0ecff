#pragma once

#include <dflow/core/cancellation.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace dflow {

/// Callbacks wait in order of their ids. The cancelling thread takes them out one by one and calls them without the
/// lock; none is added from then on.
class detail::CancellationState : public detail::CancellationFlag {
 public:
  /// The caller holds the state by a pointer of its own: a callback may let go of every other one.
  bool cancel(Status status) {
    std::unique_lock lock(mutex_);
    if (is_cancelled.load(std::memory_order_relaxed)) return false;
    status_ = status.ok() ? plainly_cancelled() : std::move(status);
    is_cancelled.store(true, std::memory_order_release);
    canceller_ = std::this_thread::get_id();
    for (std::size_t next = 0; next < waiting_.size(); ++next) {
      // Taken out before it runs, so that it may deregister itself and others.
      CancellationToken::Callback callback = std::move(waiting_[next].callback);
      if (!callback) continue;
      running_id_ = waiting_[next].id;
      lock.unlock();
      callback(status_);
      callback = nullptr;
      lock.lock();
      running_id_ = 0;
      returned_.notify_all();
    }
    waiting_.clear();
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
    waiting_.push_back({last_id_ + 1, std::move(callback)});
    return ++last_id_;
  }

  /// True if the callback was taken out before it was called.
  bool remove(std::uint64_t id, bool wait_while_running) noexcept {
    CancellationToken::Callback removed;  // destroyed after the lock is released
    std::unique_lock lock(mutex_);
    const auto at = std::lower_bound(waiting_.begin(), waiting_.end(), id,
                                     [](const Entry& e, std::uint64_t i) { return e.id < i; });
    if (at != waiting_.end() && at->id == id && at->callback) {
      removed = std::move(at->callback);
      if (!is_cancelled.load(std::memory_order_relaxed)) drop_empty();
      return true;
    }
    if (wait_while_running && canceller_ != std::this_thread::get_id()) {
      returned_.wait(lock, [&] { return running_id_ != id; });
    }
    return false;
  }

 private:
  /// Cancelling fails for nothing.
  static Status plainly_cancelled() noexcept {
    try {
      return Status::cancelled("cancelled");
    } catch (...) {
      return Status::out_of_memory();
    }
  }

  struct Entry {
    std::uint64_t id;
    CancellationToken::Callback callback;  ///< empty once it is taken out
  };

  /// Gives up the place of an entry that was taken out: at once if it is the last, else with all empty ones when they
  /// are half, so that it costs a constant time on average.
  void drop_empty() noexcept {
    while (!waiting_.empty() && !waiting_.back().callback) waiting_.pop_back();
    num_empty_ = waiting_.empty() ? 0 : num_empty_ + 1;
    if (num_empty_ * 2 <= waiting_.size()) return;
    std::erase_if(waiting_, [](const Entry& e) { return !e.callback; });
    num_empty_ = 0;
  }

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  Status status_;
  std::vector<Entry> waiting_;
  std::size_t num_empty_ = 0;  ///< at most so many of `waiting_`; those that go from its end are not counted off
  std::uint64_t last_id_ = 0;
  std::uint64_t running_id_ = 0;
  std::thread::id canceller_;
};

CancellationRegistration::CancellationRegistration(std::shared_ptr<detail::CancellationState> state,
                                                   std::uint64_t id) noexcept
    : state_(std::move(state)), id_(id) {}

CancellationRegistration& CancellationRegistration::operator=(CancellationRegistration&& other) noexcept {
  if (this != &other) {
    deregister();
    state_ = std::move(other.state_);
    id_ = other.id_;
  }
  return *this;
}

void CancellationRegistration::deregister() noexcept {
  if (const auto state = std::exchange(state_, nullptr)) state->remove(id_, true);
}

bool CancellationRegistration::try_deregister() noexcept {
  const auto state = std::exchange(state_, nullptr);
  return state != nullptr && state->remove(id_, false);
}

CancellationToken::CancellationToken(const std::shared_ptr<detail::CancellationState>& state) noexcept
    : state_(state) {}

detail::CancellationState& CancellationToken::state() const noexcept {
  return static_cast<detail::CancellationState&>(*state_);
}

Status CancellationToken::status() const { return is_cancelled() ? state().status() : Status(); }

CancellationRegistration CancellationToken::on_cancel(Callback callback) const {
  if (state_ == nullptr) return {};
  // The callback may destroy this token: nothing of it is used once the callback can run.
  auto state = std::static_pointer_cast<detail::CancellationState>(state_);
  const std::uint64_t id = state->add(callback);
  if (id == 0) {
    callback(state->status());
    return {};
  }
  return {std::move(state), id};
}

CancellationSource::CancellationSource() : state_(std::make_shared<detail::CancellationState>()) {}

CancellationSource::CancellationSource(const CancellationToken& parent) : CancellationSource() {
  if (!parent.can_be_cancelled()) return;
  // Weak: the registration is this source's, so the parent must not keep the source alive.
  parent_ =
      std::make_shared<CancellationRegistration>(parent.on_cancel([weak = std::weak_ptr(state_)](const Status& status) {
        if (const auto state = weak.lock()) state->cancel(status);
      }));
}

bool CancellationSource::is_cancelled() const noexcept { return state_->is_cancelled.load(std::memory_order_acquire); }

bool CancellationSource::cancel(Status status) {
  const auto state = state_;  // a callback may destroy this source
  return state->cancel(std::move(status));
}
bool CancellationSource::cancel() { return cancel(Status()); }

}  // namespace dflow
