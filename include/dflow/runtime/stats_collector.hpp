#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace dflow {

/// Gathers the statistics of one step from all its partitions.
///
/// Thread safety: safe.
class StatsCollector {
 public:
  /// The clock must outlive the collector.
  StatsCollector(std::uint64_t step_id, const Clock& clock);

  /// The time from which the times of nodes count.
  Clock::time_point start() const noexcept { return start_; }
  std::int64_t now_ns() const;
  void record(KernelContext& context, std::int64_t start_ns, std::int64_t end_ns);
  /// Adds the statistics of another task for the same step, which began there `later_ns` after this one.
  void add(const StepStats& other, std::int64_t later_ns);
  StepStats finish();

 private:
  const Clock& clock_;
  Clock::time_point start_;
  std::mutex mutex_;
  std::map<std::pair<int, std::thread::id>, int> threads_;  ///< threads of other tasks by a number alone
  int num_added_ = 0;
  StepStats stats_;
};

}  // namespace dflow
