#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/runtime/plan.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace dflow {

class StatsCollector;

/// One run of a plan, and the memory it needs: reused by the next run, so that a steady state allocates only tensors.
///
/// Use: `feed`, then `run_sequential`, `run_blocking` or `start`, then `fetch`, then `reset`.
///
/// Thread safety: driven by one thread at a time; the workers that it starts are its own business.
class Step : public std::enable_shared_from_this<Step> {
 public:
  using Done = UniqueFunction<void(const Status&)>;

  explicit Step(std::shared_ptr<const Plan> plan);

  const Plan& plan() const noexcept { return *plan_; }
  void feed(std::size_t i, AnyTensor tensor) noexcept { slots_[slot(plan_->feed_slots()[i])] = std::move(tensor); }
  const AnyTensor& fetch(std::size_t i) const noexcept { return slots_[slot(plan_->fetch_slots()[i])]; }
  /// Shared by all kernels of the run; set before it starts.
  StepContext& context() noexcept { return context_; }
  void set_stats(StatsCollector* stats) noexcept { stats_ = stats; }
  /// Called once, at the first error, before the run ends: aborts what asynchronous kernels wait for.
  void set_on_error(Done on_error) { on_error_ = std::move(on_error); }

  /// Runs all nodes in the calling thread. Precondition: plan().is_sequential().
  Status run_sequential();
  /// Runs with the calling thread taking part; returns when all nodes have finished.
  Status run_blocking();
  /// Returns at once; calls `done` from a pool's thread, or from the thread of the last asynchronous kernel.
  void start(Done done);

  /// Lets go of all tensors of the run but the plan's constants. After a success only what was fed and fetched is left.
  void reset(bool has_failed) noexcept;

 private:
  static std::size_t slot(std::int32_t i) noexcept { return static_cast<std::size_t>(i); }

  Status run_nodes(std::int32_t begin, std::int32_t end);
  Status run_traced(std::int32_t begin, std::int32_t end);
  void release_after(const Plan::PlanNode& node) noexcept;
  void begin();
  void drain();
  void run_unit(std::int32_t unit);
  void run_async_unit(std::int32_t unit);
  void finish_unit(std::int32_t unit);
  void fail(const Status& status);
  bool must_stop() const noexcept;
  bool wants_help();
  void schedule_drain();

  std::shared_ptr<const Plan> plan_;
  std::vector<AnyTensor> slots_;
  StepContext context_;
  StatsCollector* stats_ = nullptr;
  Done on_error_;
  Done done_;

  // Of parallel runs.
  std::unique_ptr<std::atomic<std::int32_t>[]> pending_;       ///< per unit
  std::unique_ptr<std::atomic<std::int32_t>[]> shared_reads_;  ///< per slot
  std::vector<KernelContext> async_contexts_;                  ///< per unit
  std::atomic<std::int32_t> outstanding_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable wake_caller_;
  std::vector<std::int32_t> ready_;
  int drainers_ = 0;
  bool caller_waits_ = false;
  bool has_caller_ = false;
  bool finished_ = false;
  Status status_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/step.ipp>
#endif
