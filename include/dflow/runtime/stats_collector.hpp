#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/kernels/kernel_context.hpp>
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

  std::int64_t now_ns() const;
  void record(KernelContext& context, std::int64_t start_ns, std::int64_t end_ns);
  /// What another task has gathered of the same step, with its times moved to this one's beginning by the calendar
  /// clocks of both.
  void add(const StepStats& other);
  StepStats finish();

 private:
  const Clock& clock_;
  Clock::time_point start_;
  std::mutex mutex_;
  std::map<std::pair<int, std::thread::id>, int> threads_;  ///< those of other tasks by a number alone
  int num_added_ = 0;
  StepStats stats_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/stats_collector.ipp>
#endif
