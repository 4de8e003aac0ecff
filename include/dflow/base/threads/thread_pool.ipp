#pragma once

#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/threads/cpu_quota.hpp>
#include <dflow/base/threads/inline_pool.ipp>
#include <dflow/base/threads/pool_event.ipp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/base/threads/work_stealing_pool.ipp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif

namespace dflow {

ThreadPool::~ThreadPool() = default;

void ThreadPool::wait(PoolEvent& event) {
  detail::may_block("waiting for an event");
  if (current_thread_is_worker()) {
    while (!event.is_set() && run_one()) {
    }
  }
  event.wait_blocking();
}

namespace detail {

/// A loop that scheduled tasks help with. Its owner returns when all items are done. A task that begins later finds no
/// range and leaves the body alone.
class ScheduledLoop {
 public:
  ScheduledLoop(std::int64_t total, std::int64_t shard, RangeBody body)
      : total_(total), shard_(shard), num_ranges_((total - 1) / shard + 1), body_(body) {}

  /// Runs ranges until there are none.
  void help() noexcept {
    for (;;) {
      const std::int64_t range = next_.fetch_add(1, std::memory_order_relaxed);
      if (range >= num_ranges_) return;
      const std::int64_t begin = range * shard_;
      std::int64_t done = 1;
      try {
        body_(begin, begin + std::min(shard_, total_ - begin));
      } catch (...) {
        if (!has_failed_.exchange(true)) error_ = std::current_exception();
        // The ranges that nobody has begun are done, too.
        done += std::max<std::int64_t>(0, num_ranges_ - next_.exchange(num_ranges_, std::memory_order_relaxed));
      }
      if (num_done_.fetch_add(done, std::memory_order_acq_rel) + done == num_ranges_) all_done_.set();
    }
  }
  bool has_ranges() const noexcept { return next_.load(std::memory_order_relaxed) < num_ranges_; }
  /// Blocks until the ranges that others have begun are done. Rethrows the first exception of a body.
  void wait() {
    all_done_.wait_blocking();
    // A task that begins later keeps the loop, and must not be the last to hold what its caller reads.
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  const std::int64_t total_, shard_, num_ranges_;
  const RangeBody body_;
  std::atomic<std::int64_t> next_{0}, num_done_{0};
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;
  PoolEvent all_done_;
};

/// Has a thread of the pool help, which asks for the next one first: a loop leaves one task behind at most where no
/// thread comes in time. Whatever `schedule` throws, fewer threads help.
void schedule_helper(ThreadPool& pool, const std::shared_ptr<ScheduledLoop>& loop, int helpers) noexcept {
  if (helpers < 1 || !loop->has_ranges()) return;
  try {
    pool.schedule([&pool, loop, helpers] {
      schedule_helper(pool, loop, helpers - 1);
      loop->help();
    });
  } catch (...) {
  }
}

}  // namespace detail

void ThreadPool::run_shards(std::int64_t total, std::int64_t shard, int participants, double /*cost_ns*/,
                            RangeBody body) {
  std::shared_ptr<detail::ScheduledLoop> loop;
  try {
    loop = std::make_shared<detail::ScheduledLoop>(total, shard, body);
  } catch (const std::bad_alloc&) {
    return body(0, total);
  }
  detail::schedule_helper(*this, loop, participants - 1);
  loop->help();
  loop->wait();
}

void ThreadPool::split(std::int64_t total, double cost_ns, RangeBody body, std::int64_t align) {
  // Several ranges for each thread even out their speeds; a range under 1.5 us would not pay for taking it.
  constexpr double ranges_each = 4;
  constexpr double min_range_ns = 1'500;
  if (align < 1) align = 1;
  const double most_threads = num_threads();
  const bool is_forced = min_split_ns_ <= 0;
  const auto worth = [&](double number, double most) {
    return is_forced ? most : number > 1 ? std::min(number, most) : 1;
  };
  const double threads = worth(cost_ns * 2 / min_split_ns_, most_threads);  // one where that is not a number
  const auto ranges = static_cast<std::int64_t>(worth(cost_ns / min_range_ns, threads * ranges_each));
  const std::int64_t blocks = (total - 1) / align + 1;
  const std::int64_t blocks_each = (blocks - 1) / ranges + 1;
  const std::int64_t ranges_in_fact = (blocks - 1) / blocks_each + 1;
  const auto participants = static_cast<int>(std::min(static_cast<std::int64_t>(threads), ranges_in_fact));
  if (participants < 2) {
    body(0, total);
    return;
  }
  run_shards(total, blocks_each * align, participants, cost_ns, body);
}

namespace detail {
inline int count_available_cores() noexcept {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) cores = CPU_COUNT(&allowed);
  try {
    PosixFileSystem files;
    cores = std::min(cores, cpu_quota(files).value_or(cores));
  } catch (...) {
    // Without memory for a path the quota stays unknown.
  }
#endif
  return std::max(1, cores);
}
}  // namespace detail

int available_cores() noexcept {
  static const int cores = detail::count_available_cores();
  return cores;
}

}  // namespace dflow
