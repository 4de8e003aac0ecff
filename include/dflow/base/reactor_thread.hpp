#pragma once

namespace dflow::detail {

/// While a ReactorThread lives, its thread serves all sockets of a transport, or all timers of a clock. If such a
/// thread blocks, all of them stand still.
class ReactorThread {
 public:
  ReactorThread() noexcept;
  ~ReactorThread();
  ReactorThread(const ReactorThread&) = delete;
  ReactorThread& operator=(const ReactorThread&) = delete;

  static bool is_current() noexcept;

 private:
  const bool outer_;
};

/// Marks an operation that may block, `what` in words. A debug build that comes here on a ReactorThread writes a line
/// with the words and aborts.
void may_block(const char* what) noexcept;

}  // namespace dflow::detail
