#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include <atomic>
#include <stop_token>

namespace dflow::detail {

/// An event that several threads may cause.
///
/// Thread safety: safe.
struct FirstOfSeveral {
  std::atomic<bool> has_come{false};
  PoolEvent event;
  void come() noexcept {
    if (!has_come.exchange(true)) event.set();
  }
};

/// Blocks in `pool` until the clock shows `time` or stop is requested.
///
/// Thread safety: safe.
void wait_until(ThreadPool& pool, Clock& clock, Clock::time_point time, const std::stop_token& stop);

}  // namespace dflow::detail
