#pragma once

#include <utility>

namespace dflow::detail {

/// Thrown by what would keep a thread for long that must not be kept: nothing has been done, and all can be done by
/// another thread.
struct WouldWait {};

/// As long as one lives its thread, a socket's or a clock's, is to be kept by nothing: what would wait for the work of
/// others, or do much itself, throws WouldWait.
class NoWaiting {
 public:
  explicit NoWaiting(bool applies = true) noexcept : outer_(std::exchange(applies_here(), applies)) {}
  ~NoWaiting() { applies_here() = outer_; }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

  /// Before what may take long. Errors: WouldWait.
  static void check() {
    if (applies_here()) throw WouldWait();
  }

 private:
  static bool& applies_here() noexcept {
    static constinit thread_local bool applies = false;
    return applies;
  }

  const bool outer_;
};

}  // namespace dflow::detail
