#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/termination_signal.hpp>

#include <signal.h>
#include <atomic>
#include <mutex>

namespace dflow {

namespace detail {

/// A handler has nothing but the process to keep its mark in.
struct TerminationHandler {
  std::mutex mutex;
  int num_users = 0;
  struct sigaction before {};
};

inline constinit std::atomic<std::uint64_t> num_termination_signals{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

extern "C" inline void dflow_note_termination(int) { num_termination_signals.fetch_add(1, std::memory_order_relaxed); }

TerminationHandler& termination_handler() {
  static TerminationHandler handler;
  return handler;
}

}  // namespace detail

TerminationSignal::TerminationSignal() : seen_(detail::num_termination_signals.load(std::memory_order_relaxed)) {
  detail::TerminationHandler& handler = detail::termination_handler();
  const std::lock_guard lock(handler.mutex);
  if (handler.num_users == 0) {
    struct sigaction action {};
    action.sa_handler = &detail::dflow_note_termination;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (::sigaction(SIGTERM, &action, &handler.before) != 0) {
      throw_error(Status::unavailable("the handler of SIGTERM cannot be installed"));
    }
  }
  ++handler.num_users;
}

TerminationSignal::~TerminationSignal() {
  detail::TerminationHandler& handler = detail::termination_handler();
  const std::lock_guard lock(handler.mutex);
  if (--handler.num_users == 0) ::sigaction(SIGTERM, &handler.before, nullptr);
}

bool TerminationSignal::has_come() const noexcept {
  return detail::num_termination_signals.load(std::memory_order_relaxed) != seen_;
}

}  // namespace dflow
