#pragma once

#include <dflow/kernels/kernel_context.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace dflow {

/// Gathers the statistics of one step from all its partitions.
///
/// Thread safety: safe.
class StatsCollector {
 public:
  explicit StatsCollector(std::uint64_t step_id);

  std::int64_t now_ns() const;
  void record(KernelContext& context, std::int64_t start_ns, std::int64_t end_ns);
  StepStats finish();

 private:
  std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::unordered_map<std::thread::id, int> threads_;
  StepStats stats_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/stats_collector.ipp>
#endif
