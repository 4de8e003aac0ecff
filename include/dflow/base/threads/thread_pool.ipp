#pragma once

#include <dflow/base/threads/cpu_quota.hpp>
#include <dflow/base/threads/inline_pool.ipp>
#include <dflow/base/threads/pool_event.ipp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/base/threads/work_stealing_pool.ipp>

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace dflow {

ThreadPool::~ThreadPool() = default;

void ThreadPool::wait(PoolEvent& event) {
  if (current_thread_is_worker()) {
    while (!event.is_set() && run_one()) {
    }
  }
  event.wait_blocking();
}

void ThreadPool::run_shards(std::int64_t total, std::int64_t shard, int /*participants*/, double /*cost_ns*/,
                            RangeBody body) {
  for (std::int64_t begin = 0; begin < total; begin += std::min(shard, total - begin)) {
    body(begin, begin + std::min(shard, total - begin));
  }
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
