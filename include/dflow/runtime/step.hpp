#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/unit_queue.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace dflow {

class StatsCollector;

/// One run of a plan, and the memory it needs: reused by the next run, so that a steady state allocates only tensors.
///
/// Use: `feed`, then `run_sequential` or `start`, then `fetch`, then `reset`. If the plan streams, `feed_late` instead,
/// at any time after `start`, and `set_on_fetch` before it.
///
/// Thread safety: driven by one thread at a time; `feed_late` may be called from any thread. The threads that run its
/// units are the queue's business.
class Step : public std::enable_shared_from_this<Step> {
 public:
  using Done = UniqueFunction<void(const Status&)>;
  /// Called with the number of a fetch as soon as it is made, from the thread that made it.
  using OnFetch = UniqueFunction<void(std::size_t fetch)>;

  explicit Step(std::shared_ptr<const Plan> plan);

  const Plan& plan() const noexcept { return *plan_; }
  void feed(std::size_t i, AnyTensor&& tensor) noexcept { slots_[plan_->feed_slots()[i]] = std::move(tensor); }
  void feed(std::size_t i, const AnyTensor& tensor) noexcept { slots_[plan_->feed_slots()[i]] = tensor; }
  /// A feed that stays (`PlanOptions::holds_feeds_from`); it must be fed again after this call.
  AnyTensor take_feed(std::size_t i) noexcept { return std::move(slots_[plan_->feed_slots()[i]]); }
  /// The tensor of a fetch; uninitialised if it is dead.
  const AnyTensor& fetch(std::size_t i) const noexcept { return slots_[plan_->fetch_slots()[i]]; }
  /// The same, moved out if the plan needs it no more (a constant stays).
  AnyTensor take_fetch(std::size_t i) noexcept;
  /// The same for a caller that must be the only holder: copied if anybody else holds or lends its memory. Throws
  /// ResourceExhausted.
  void give_fetch(std::size_t i, AnyTensor& result);
  bool is_fetch_dead(std::size_t i) const noexcept {
    return !dead_.slots.empty() && dead_.slots[plan_->fetch_slots()[i]] != 0;
  }
  /// Shared by all kernels of the run; set before it starts.
  StepContext& context() noexcept {
    is_attended_ = true;
    return context_;
  }
  /// Sets the id, the only part of the context that an unattended step has.
  void set_id(std::uint64_t id) noexcept { context_.step_id = id; }
  void set_stats(StatsCollector* stats) noexcept {
    is_attended_ = true;
    stats_ = stats;
    context_.stats = stats;
  }
  /// The step is a call from a kernel of a step with that context, and uses its services.
  void set_outer(const StepContext& outer) noexcept;
  /// Called once, at the first error, before the run ends: aborts the waits of asynchronous kernels.
  void set_on_error(Done on_error) {
    is_attended_ = true;
    on_error_ = std::move(on_error);
  }
  void set_on_fetch(OnFetch on_fetch) {
    is_attended_ = true;
    on_fetch_ = std::move(on_fetch);
  }

  /// Runs all nodes in the calling thread. Precondition: plan().is_sequential().
  Status run_sequential();
  /// Gives its units to `queue` as they become ready and returns; calls `done` when the last one has ended, in the
  /// thread that ran it. Late feeds count as units.
  void start(std::shared_ptr<UnitQueue> queue, Done done);
  /// Once for each feed. Precondition: plan().streams(), started.
  void feed_late(std::size_t i, AnyTensor tensor);
  /// Ends the feeds that have not come, after `cancel` or an error: their units pass without a tensor.
  void give_up_feeds();

  /// Lets go of all tensors of the run except the plan's constants. After a success only feeds and fetches are left.
  void reset(bool has_failed) noexcept;
  /// The same after a success, for a following run with the same settings, and with the feeds that stay.
  void reset_run() noexcept;

 private:
  friend class UnitQueue;
  static std::size_t at(std::int32_t i) noexcept { return static_cast<std::size_t>(i); }

  /// If `waits_at` is given, it is set to the node that would have blocked a thread that must not block.
  Status run_nodes(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at = nullptr);
  Status run_by_node(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at);
  Status run_nodes_with_care(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at);
  Status run_kernels(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at);
  /// The same if the device records stretches of nodes.
  Status run_recorded(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at);
  Status run_record(const Plan::RecordedNodes& recorded, std::optional<PlanNodeId>* waits_at);
  class RecordedRun;
  void finish_in_pool(UnitId unit, PlanNodeId from);
  Status error_at(const Plan::PlanNode& node, const Status& status) const;
  /// Why the run of the nodes from `begin` on stops before node `at`. The node before `at` was under way when the step
  /// was cancelled, so it is named. Ok if the run was not cancelled: it has failed elsewhere, or goes on.
  Status stopped_at(PlanNodeId begin, PlanNodeId at) const;
  /// True if the node must be passed over, its outputs being dead now.
  bool pass_dead(const Plan::PlanNode& node) noexcept {
    return context_.dead != nullptr && dead_.any.load(std::memory_order_relaxed) && has_dead_inputs(node);
  }
  bool has_dead_inputs(const Plan::PlanNode& node) noexcept;
  void check_outputs(KernelContext& context) const;
  void let_go(SlotId slot) noexcept {
    if (plan_->device().release != nullptr) hand_over(slot);
    slots_[slot].reset();
  }
  void hand_over(SlotId slot) noexcept;
  void release_after(const Plan::PlanNode& node) noexcept {
    if (node.release_begin != node.release_end || node.share_begin != node.share_end) release_read(node);
  }
  void release_read(const Plan::PlanNode& node) noexcept;
  void run_unit(UnitId unit, MadeUnits& made, bool may_wait = true);
  void run_async_unit(UnitId unit);
  void end_async_unit(UnitId unit, std::int64_t start, Status status);
  void finish_unit(UnitId unit, MadeUnits& made);
  void finish_elsewhere(UnitId unit);
  /// One unit, or a thread that starts one, less to wait for: the last one ends the run.
  void count_down();
  ReadyUnit ready(UnitId unit) noexcept;
  void fail(const Status& status);
  bool must_stop() const noexcept {
    return failed_.load(std::memory_order_relaxed) || context_.cancellation.is_cancelled();
  }

  std::shared_ptr<const Plan> plan_;
  IndexedVector<SlotId, AnyTensor> slots_;
  DeadTensors dead_;  ///< without slots unless the plan carries dead tensors
  StepContext context_;
  StepResources resources_;
  bool is_attended_ = false;  ///< one of the following members, or of the context, has been set
  StatsCollector* stats_ = nullptr;
  Done on_error_;
  OnFetch on_fetch_;
  Done done_;

  // Members for runs by units.
  std::shared_ptr<UnitQueue> queue_;
  IndexedVector<UnitId, std::atomic<std::int32_t>> pending_;
  IndexedVector<SlotId, std::atomic<std::int32_t>> shared_reads_;
  std::unique_ptr<std::atomic<bool>[]> fed_;  ///< per feed, if the plan streams
  IndexedVector<UnitId, KernelContext> async_contexts_;
  std::atomic<std::int32_t> outstanding_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  ///< guards `status_` and `on_error_` while units run
  Status status_;
};

}  // namespace dflow
