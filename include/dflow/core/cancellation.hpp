#pragma once

/// Public: how a step, or whatever waits in it, is told to give up.

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

  /// Takes the callback out. May block: if the callback is running on another thread, until it has returned, so that
  /// what it uses may be destroyed next. On the callback's own thread it does not wait for itself.
  void deregister() noexcept;
  /// Takes the callback out and never blocks: true if it has not been called and never will be; false if it was called,
  /// maybe is being called right now. What a pool's thread uses. The registration is empty afterwards.
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
  /// Given the status that the source was cancelled with.
  using Callback = UniqueFunction<void(const Status&)>;

  CancellationToken() noexcept = default;

  /// False for the default token, which nothing can cancel.
  bool can_be_cancelled() const noexcept { return state_ != nullptr; }
  bool is_cancelled() const noexcept {
    return state_ != nullptr && state_->is_cancelled.load(std::memory_order_acquire);
  }
  /// Why, or ok as long as it is not cancelled.
  Status status() const;

  /// Calls `callback` once when the source is cancelled, on the thread that cancels; at once on this thread if it is
  /// already. A callback must be short, must not throw and must not block; it may register and deregister others, and
  /// destroy anything: the source, this token, its own registration.
  [[nodiscard]] CancellationRegistration on_cancel(Callback callback) const;

 private:
  friend class CancellationSource;
  explicit CancellationToken(const std::shared_ptr<detail::CancellationState>& state) noexcept;
  detail::CancellationState& state() const noexcept;

  std::shared_ptr<detail::CancellationFlag> state_;
};

/// The end that cancels. Copies are the same source.
///
/// Thread safety: all functions may be called from any thread.
class CancellationSource {
 public:
  CancellationSource();
  /// Is cancelled when `parent` is, with its status, or by itself.
  explicit CancellationSource(const CancellationToken& parent);

  CancellationToken token() const { return CancellationToken(state_); }
  bool is_cancelled() const noexcept;
  /// Calls the registered callbacks, in the order of registration, then returns true. The first status stays: false if
  /// it was cancelled before. An ok status counts as Code::cancelled, or as Status::out_of_memory() if there is no
  /// memory for it: this throws nothing. The source may be destroyed by a callback.
  bool cancel(Status status);
  bool cancel();

 private:
  std::shared_ptr<detail::CancellationState> state_;
  std::shared_ptr<CancellationRegistration> parent_;
};

}  // namespace dflow
