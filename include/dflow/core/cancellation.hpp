#pragma once

/// Public: the cancellation of a step and of all operations that wait in it.

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace dflow {

namespace detail {
/// The part of the shared state that is_cancelled() reads; the rest is in cancellation.ipp.
struct CancellationFlag {
  std::atomic<bool> is_cancelled{false};
};
class CancellationState;
}  // namespace detail

/// Keeps a callback registered while it lives.
///
/// Thread safety: one thread at a time.
class CancellationRegistration {
 public:
  CancellationRegistration() noexcept = default;
  CancellationRegistration(CancellationRegistration&&) noexcept = default;
  CancellationRegistration& operator=(CancellationRegistration&& other) noexcept;
  ~CancellationRegistration() { deregister(); }

  /// Removes the callback. May block: if the callback is running on another thread, until it has returned. After that,
  /// objects that the callback uses may be destroyed. On the callback's own thread the function does not wait.
  void deregister() noexcept;
  /// Removes the callback and never blocks. True if the callback was not called and never will be; false if it was
  /// called, and it may still be running. For threads of a pool. The registration is empty afterwards.
  bool try_deregister() noexcept;

 private:
  friend class CancellationToken;
  CancellationRegistration(std::shared_ptr<detail::CancellationState> state, std::uint64_t id) noexcept;

  std::shared_ptr<detail::CancellationState> state_;
  std::uint64_t id_ = 0;
};

/// The listening end of a CancellationSource. The default is never cancelled.
///
/// Thread safety: all functions may be called from any thread.
class CancellationToken {
 public:
  /// Gets the status that the source was cancelled with.
  using Callback = UniqueFunction<void(const Status&)>;

  CancellationToken() noexcept = default;

  /// False for the default token, which nothing can cancel.
  bool can_be_cancelled() const noexcept { return state_ != nullptr; }
  bool is_cancelled() const noexcept {
    return state_ != nullptr && state_->is_cancelled.load(std::memory_order_acquire);
  }
  /// The reason for the cancellation, or ok as long as the token is not cancelled.
  Status status() const;

  /// Calls `callback` once when the source is cancelled, on the thread that cancels; at once on this thread if the
  /// source is already cancelled. A callback must be short, must not throw and must not block; it may register and
  /// deregister others, and destroy anything: the source, this token, its own registration.
  [[nodiscard]] CancellationRegistration on_cancel(Callback callback) const;

 private:
  friend class CancellationSource;
  explicit CancellationToken(const std::shared_ptr<detail::CancellationState>& state) noexcept;
  detail::CancellationState& state() const noexcept;

  std::shared_ptr<detail::CancellationFlag> state_;
};

/// The cancelling end. Copies are the same source.
///
/// Thread safety: all functions may be called from any thread.
class CancellationSource {
 public:
  CancellationSource();
  /// A source that is cancelled with `parent`, with the same status, or by itself.
  explicit CancellationSource(const CancellationToken& parent);

  CancellationToken token() const { return CancellationToken(state_); }
  bool is_cancelled() const noexcept;
  /// Calls the registered callbacks, in the order of registration, then returns true. Returns false if the source was
  /// cancelled before; the first status stays. An ok status counts as Code::cancelled, or as Status::out_of_memory() if
  /// there is no memory for it: `cancel` never throws. A callback may destroy the source.
  bool cancel(Status status);
  bool cancel();

 private:
  std::shared_ptr<detail::CancellationState> state_;
  std::shared_ptr<CancellationRegistration> parent_;
};

}  // namespace dflow
