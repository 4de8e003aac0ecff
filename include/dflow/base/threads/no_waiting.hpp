#pragma once

#include <utility>

namespace dflow::detail {

/// Thrown by an operation that would take long on a thread that must not wait: nothing has been done, and another
/// thread can do all of it.
struct WouldWait {};

/// While a NoWaiting lives, its thread (of a socket or a clock) must not wait. An operation that would wait for other
/// work, or do much itself, throws WouldWait.
class NoWaiting {
 public:
  explicit NoWaiting(bool applies = true) noexcept : outer_(std::exchange(applies_here(), applies)) {}
  ~NoWaiting() { applies_here() = outer_; }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

  /// Call before an operation that may take long. Errors: WouldWait.
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
