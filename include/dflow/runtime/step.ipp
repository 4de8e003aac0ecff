#pragma once

#include <dflow/runtime/stats_collector.hpp>
#include <dflow/runtime/step.hpp>

#include <utility>

namespace dflow {

DFLOW_INLINE Step::Step(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  slots_.resize(slot(plan_->num_slots()));
  for (const auto& [index, tensor] : plan_->constants()) slots_[slot(index)] = tensor;
  if (plan_->is_sequential()) return;
  pending_ = std::make_unique<std::atomic<std::int32_t>[]>(plan_->units().size());
  shared_reads_ = std::make_unique<std::atomic<std::int32_t>[]>(slots_.size());
  async_contexts_.reserve(plan_->units().size());
  for (const Plan::Unit& unit : plan_->units()) {
    const Plan::PlanNode& node = plan_->nodes()[slot(unit.node_begin)];
    async_contexts_.emplace_back(slots_.data(), node.wiring, plan_->device(), context_);
  }
}

DFLOW_INLINE void Step::reset(bool has_failed) noexcept {
  if (has_failed) {
    for (AnyTensor& tensor : slots_) tensor.reset();
    for (const auto& [index, tensor] : plan_->constants()) slots_[slot(index)] = tensor;
  } else {
    // Every other tensor was let go by its last reader.
    for (const std::int32_t index : plan_->cleared_slots()) slots_[slot(index)].reset();
  }
  stats_ = nullptr;
  on_error_ = nullptr;
  context_ = StepContext{};
  status_ = Status();
}

DFLOW_INLINE bool Step::must_stop() const noexcept {
  return failed_.load(std::memory_order_relaxed) || context_.cancellation.is_cancelled();
}

// ---- the loop over a stretch of nodes ----

DFLOW_INLINE void Step::release_after(const Plan::PlanNode& node) noexcept {
  for (std::int32_t r = node.release_begin; r < node.release_end; ++r) slots_[slot(plan_->released()[slot(r)])].reset();
  for (std::int32_t r = node.share_begin; r < node.share_end; ++r) {
    const std::size_t s = slot(plan_->shared_reads()[slot(r)]);
    if (shared_reads_[s].fetch_sub(1, std::memory_order_acq_rel) == 1) slots_[s].reset();
  }
}

DFLOW_INLINE Status Step::run_nodes(std::int32_t begin, std::int32_t end) {
  if (stats_ != nullptr) return run_traced(begin, end);
  const Plan::PlanNode* const nodes = plan_->nodes().data();
  AnyTensor* const slots = slots_.data();
  const DeviceContext& device = plan_->device();
  std::int32_t i = begin;
  try {
    for (; i < end; ++i) {
      if (must_stop()) return context_.cancellation.is_cancelled() ? context_.cancellation.status() : Status();
      const Plan::PlanNode& node = nodes[i];
      KernelContext context(slots, node.wiring, device, context_);
      node.kernel->run(context);
      if (node.release_begin != node.release_end || node.share_begin != node.share_end) release_after(node);
    }
  } catch (...) {
    const Node& node = *nodes[i].wiring.node;
    return status_of_current_exception()
        .with_node(node.op->name, node.name)
        .with_device(device.name)
        .with_location(node.where);
  }
  return {};
}

DFLOW_INLINE Status Step::run_traced(std::int32_t begin, std::int32_t end) {
  StatsCollector* const stats = stats_;
  Status status;
  for (std::int32_t i = begin; i < end && status.ok(); ++i) {
    const Plan::PlanNode& node = plan_->nodes()[slot(i)];
    KernelContext context(slots_.data(), node.wiring, plan_->device(), context_);
    const std::int64_t start = stats->now_ns();
    try {
      if (must_stop()) {
        status = context_.cancellation.is_cancelled() ? context_.cancellation.status() : Status();
        break;
      }
      node.kernel->run(context);
      stats->record(context, start, stats->now_ns());
      release_after(node);
    } catch (...) {
      const Node& graph_node = *node.wiring.node;
      status = status_of_current_exception()
                   .with_node(graph_node.op->name, graph_node.name)
                   .with_device(plan_->device().name)
                   .with_location(graph_node.where);
    }
  }
  return status;
}

DFLOW_INLINE Status Step::run_sequential() {
  failed_.store(false, std::memory_order_relaxed);
  const Status status = run_nodes(0, static_cast<std::int32_t>(plan_->nodes().size()));
  if (!status.ok() && on_error_) on_error_(status);
  return status;
}

// ---- units at once ----

DFLOW_INLINE void Step::begin() {
  const std::span<const Plan::Unit> units = plan_->units();
  failed_.store(false, std::memory_order_relaxed);
  status_ = Status();
  finished_ = false;
  ready_.clear();
  outstanding_.store(static_cast<std::int32_t>(units.size()), std::memory_order_relaxed);
  for (std::size_t u = 0; u < units.size(); ++u) {
    pending_[u].store(units[u].pending, std::memory_order_relaxed);
    if (units[u].pending == 0) ready_.push_back(static_cast<std::int32_t>(u));
  }
  const std::span<const std::int32_t> counts = plan_->shared_read_counts();
  for (std::size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] != 0) shared_reads_[s].store(counts[s], std::memory_order_relaxed);
  }
}

DFLOW_INLINE Status Step::run_blocking() {
  if (plan_->is_sequential()) return run_sequential();
  if (plan_->units().empty()) return {};
  const std::shared_ptr<Step> keep = shared_from_this();
  bool help = false;
  {
    const std::lock_guard lock(mutex_);
    has_caller_ = true;
    begin();
    ++drainers_;  // not set: a drainer of the run before may be on its way out
    help = wants_help();
  }
  if (help) schedule_drain();
  for (;;) {
    drain();
    std::unique_lock lock(mutex_);
    if (ready_.empty() && !finished_) {
      caller_waits_ = true;
      wake_caller_.wait(lock, [this] { return finished_ || !ready_.empty(); });
      caller_waits_ = false;
    }
    if (finished_ && ready_.empty()) {
      has_caller_ = false;
      return status_;
    }
    ++drainers_;
  }
}

DFLOW_INLINE void Step::start(Done done) {
  const std::shared_ptr<Step> keep = shared_from_this();
  done_ = std::move(done);
  if (plan_->is_sequential()) {
    plan_->device().pool->schedule([keep] {
      const Status status = keep->run_sequential();
      std::exchange(keep->done_, nullptr)(status);
    });
    return;
  }
  if (plan_->units().empty()) return std::exchange(done_, nullptr)(Status());
  {
    const std::lock_guard lock(mutex_);
    begin();
    ++drainers_;  // not set: a drainer of the run before may be on its way out
  }
  schedule_drain();
}

/// Called with the mutex held, after units became ready. True if the caller must schedule one more drainer once it has let
/// go of the mutex: a pool without threads runs it at once.
DFLOW_INLINE bool Step::wants_help() {
  if (ready_.empty()) return false;
  int expensive = 0;
  for (const std::int32_t unit : ready_) expensive += plan_->units()[slot(unit)].is_expensive ? 1 : 0;
  const bool nobody_works = drainers_ == 0;
  const bool worth_it = expensive > 1 && drainers_ < plan_->device().pool->num_threads();
  if (!nobody_works && !worth_it) return false;
  if (caller_waits_) {
    wake_caller_.notify_one();
    return false;
  }
  ++drainers_;
  return true;
}

DFLOW_INLINE void Step::schedule_drain() {
  plan_->device().pool->schedule([self = shared_from_this()] { self->drain(); });
}

DFLOW_INLINE void Step::drain() {
  const std::shared_ptr<Step> keep = shared_from_this();
  std::unique_lock lock(mutex_);
  while (!ready_.empty()) {
    const std::int32_t unit = ready_.back();
    ready_.pop_back();
    lock.unlock();
    run_unit(unit);
    lock.lock();
  }
  --drainers_;
}

DFLOW_INLINE void Step::run_unit(std::int32_t unit) {
  const Plan::Unit& planned = plan_->units()[slot(unit)];
  if (planned.is_async && !must_stop()) return run_async_unit(unit);
  if (const Status status = must_stop() ? context_.cancellation.status() : run_nodes(planned.node_begin, planned.node_end);
      !status.ok()) {
    fail(status);
  }
  finish_unit(unit);
}

DFLOW_INLINE void Step::run_async_unit(std::int32_t unit) {
  const Plan::PlanNode& node = plan_->nodes()[slot(plan_->units()[slot(unit)].node_begin)];
  const auto& kernel = static_cast<const AsyncKernel&>(*node.kernel);
  KernelContext& context = async_contexts_[slot(unit)];
  const std::int64_t start = stats_ == nullptr ? 0 : stats_->now_ns();
  const auto finish = [self = shared_from_this(), unit, start](const Status& status) {
    const Plan::PlanNode& done_node = self->plan_->nodes()[slot(self->plan_->units()[slot(unit)].node_begin)];
    if (status.ok()) {
      if (self->stats_ != nullptr) self->stats_->record(self->async_contexts_[slot(unit)], start, self->stats_->now_ns());
      self->release_after(done_node);
    } else {
      const Node& graph_node = *done_node.wiring.node;
      self->fail(status.with_node(graph_node.op->name, graph_node.name)
                     .with_device(self->plan_->device().name)
                     .with_location(graph_node.where));
    }
    self->finish_unit(unit);
  };
  try {
    kernel.run_async(context, finish);
  } catch (...) {
    finish(status_of_current_exception());
  }
}

DFLOW_INLINE void Step::finish_unit(std::int32_t unit) {
  const Plan::Unit& planned = plan_->units()[slot(unit)];
  Done done;
  Status status;
  bool help = false;
  {
    const std::lock_guard lock(mutex_);
    for (std::int32_t c = planned.consumer_begin; c < planned.consumer_end; ++c) {
      const std::int32_t consumer = plan_->unit_consumers()[slot(c)];
      if (pending_[slot(consumer)].fetch_sub(1, std::memory_order_acq_rel) == 1) ready_.push_back(consumer);
    }
    if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      finished_ = true;
      status = status_;
      if (has_caller_) {
        wake_caller_.notify_one();
      } else {
        done = std::exchange(done_, nullptr);
      }
    } else {
      help = wants_help();
    }
  }
  if (help) schedule_drain();
  if (done) done(status);
}

DFLOW_INLINE void Step::fail(const Status& status) {
  Done on_error;
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failed_.store(true, std::memory_order_relaxed);
    status_ = status;
    on_error = std::exchange(on_error_, nullptr);
  }
  if (on_error) on_error(status);
}

}  // namespace dflow
