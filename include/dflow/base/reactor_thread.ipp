#pragma once

#include <dflow/base/reactor_thread.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace dflow::detail {

bool& reactor_mark() noexcept {
  static constinit thread_local bool is_reactor = false;
  return is_reactor;
}

ReactorThread::ReactorThread() noexcept : outer_(std::exchange(reactor_mark(), true)) {}
ReactorThread::~ReactorThread() { reactor_mark() = outer_; }
bool ReactorThread::is_current() noexcept { return reactor_mark(); }

void may_block([[maybe_unused]] const char* what) noexcept {
#if !defined(NDEBUG)
  if (!ReactorThread::is_current()) return;
  std::fprintf(stderr, "dflow: %s blocks a thread that serves sockets or timers\n", what);
  std::abort();
#endif
}

}  // namespace dflow::detail
