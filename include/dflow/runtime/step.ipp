#pragma once

#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/runtime/stats_collector.hpp>
#include <dflow/runtime/step.hpp>

#include <algorithm>
#include <utility>

namespace dflow {

Step::Step(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  slots_.resize(plan_->num_slots());
  for (const auto& [slot, tensor] : plan_->constants()) slots_[slot] = tensor;
  context_.resources = &resources_;
  if (plan_->carries_dead()) {
    dead_.slots.resize(slots_.size());
    context_.dead = &dead_;
  }
  if (plan_->is_sequential()) return;
  pending_ = IndexedVector<UnitId, std::atomic<std::int32_t>>(plan_->units().size());
  shared_reads_ = IndexedVector<SlotId, std::atomic<std::int32_t>>(slots_.size());
  if (plan_->streams()) fed_ = std::make_unique<std::atomic<bool>[]>(plan_->feed_units().size());
  async_contexts_.reserve(plan_->units().size());
  static constexpr KernelContext::Wiring no_node;
  for (const Plan::Unit& unit : plan_->units()) {
    const bool has_node = unit.node_begin != unit.node_end;
    async_contexts_.emplace_back(slots_.data(), has_node ? plan_->nodes()[unit.node_begin].wiring : no_node,
                                 plan_->device(), context_);
  }
}

void Step::set_outer(const StepContext& outer) noexcept {
  is_attended_ = true;
  context_ = outer;
  context_.dead = dead_.slots.empty() ? nullptr : &dead_;
  stats_ = outer.stats;
}

void Step::reset_run() noexcept {
  // Every other tensor was let go by its last reader.
  for (const SlotId slot : plan_->cleared_slots()) let_go(slot);
  if (dead_.any.load(std::memory_order_relaxed)) {
    std::fill(dead_.slots.begin(), dead_.slots.end(), std::uint8_t{0});
    dead_.any.store(false, std::memory_order_relaxed);
  }
}

void Step::reset(bool has_failed) noexcept {
  reset_run();
  for (const SlotId slot : plan_->held_slots()) let_go(slot);
  if (has_failed) {
    for (const SlotId slot : slots_.indices()) let_go(slot);
    for (const auto& [slot, tensor] : plan_->constants()) slots_[slot] = tensor;
  }
  resources_.clear();
  status_ = Status();
  if (!std::exchange(is_attended_, false)) return;
  stats_ = nullptr;
  on_error_ = nullptr;
  on_fetch_ = nullptr;
  context_ = StepContext{};
  context_.resources = &resources_;
  if (!dead_.slots.empty()) context_.dead = &dead_;
}

AnyTensor Step::take_fetch(std::size_t i) noexcept {
  AnyTensor& tensor = slots_[plan_->fetch_slots()[i]];
  return plan_->may_take_fetch(i) ? std::move(tensor) : tensor;
}

void Step::give_fetch(std::size_t i, AnyTensor& result) {
  AnyTensor& tensor = slots_[plan_->fetch_slots()[i]];
  const bool has_memory = static_cast<bool>(tensor.buffer());
  if (plan_->may_take_fetch(i) && (!has_memory || tensor.buffer_is_unique())) {
    result = std::move(tensor);
  } else {
    result = has_memory ? tensor.deep_copy() : tensor;
  }
}

// ---- the loop over a stretch of nodes ----

/// To a device that may not have finished with it.
void Step::hand_over(SlotId slot) noexcept {
  AnyTensor& tensor = slots_[slot];
  if (tensor.is_initialized()) plan_->device().release(plan_->device(), std::move(tensor));
}

void Step::release_read(const Plan::PlanNode& node) noexcept {
  for (std::int32_t r = node.release_begin; r < node.release_end; ++r) let_go(plan_->released()[at(r)]);
  for (std::int32_t r = node.share_begin; r < node.share_end; ++r) {
    const SlotId slot = plan_->shared_reads()[at(r)];
    if (shared_reads_[slot].fetch_sub(1, std::memory_order_acq_rel) == 1) let_go(slot);
  }
}

Status Step::error_at(const Plan::PlanNode& node, const Status& status) const {
  const Node& graph_node = *node.wiring.node;
  return status.with_node(graph_node.op->name, without_copy(graph_node.name))
      .with_device(plan_->device().name)
      .with_location(graph_node.where);
}

Status Step::stopped_at(PlanNodeId begin, PlanNodeId at) const {
  if (!context_.cancellation.is_cancelled()) return {};
  const Status why = context_.cancellation.status();
  return at == begin ? why : error_at(plan_->nodes()[PlanNodeId(at.value() - 1)], why);
}

void Step::check_outputs(KernelContext& context) const {
  for (int o = 0; o < context.num_outputs(); ++o) {
    const AnyTensor& output = context.output(o);
    const bool is_dead = context_.dead != nullptr && context_.dead->slots[context.wiring_->first_output + o] != 0;
    if (is_dead) continue;
    if (!output.is_initialized()) throw_error(Status::internal(str_cat("the kernel has left output ", o, " unset")));
    if (output.dtype() != context.output_dtype(o)) {
      throw_error(
          Status::internal(str_cat("the kernel set output ", o, " to a tensor of type ", dtype_name(output.dtype()))));
    }
    if (is_handle(output.dtype())) continue;  // the edge has the shape of the tensor that the handle leads to
    const PartialShape& promised = context.node().outputs[static_cast<std::size_t>(o)].shape;
    if (!promised.is_compatible_with(output.shape())) {
      throw_error(Status::internal(str_cat("the kernel set output ", o, " to shape ", output.shape().to_string(),
                                           ", but the op has inferred ", promised.to_string())));
    }
  }
}

Status Step::run_nodes(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at) {
  if (stats_ == nullptr && !plan_->recorded().empty()) return run_recorded(begin, end, waits_at);
  return run_by_node(begin, end, waits_at);
}

Status Step::run_by_node(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at) {
  if (stats_ != nullptr || context_.dead != nullptr) return run_nodes_with_care(begin, end, waits_at);
  return run_kernels(begin, end, waits_at);
}

Status Step::run_kernels(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at) {
  const Plan::PlanNode* const nodes = plan_->nodes().data();
  AnyTensor* const slots = slots_.data();
  const DeviceContext& device = plan_->device();
  PlanNodeId i = begin;
  try {
    for (; i < end; ++i) {
      if (must_stop()) return stopped_at(begin, i);
      const Plan::PlanNode& node = nodes[i.position()];
      KernelContext context(slots, node.wiring, device, context_);
      node.kernel->run(context);
      if (!node.is_trusted) check_outputs(context);
      release_after(node);
    }
  } catch (const detail::WouldWait&) {
    *waits_at = i;
    return {};
  } catch (...) {
    return error_at(nodes[i.position()], status_of_current_exception());
  }
  return stopped_at(begin, end);
}

Status Step::run_recorded(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at) {
  const std::span<const Plan::RecordedNodes> all = plan_->recorded();
  // If a stretch was left in its middle, its kernels run one by one.
  auto next = std::lower_bound(all.begin(), all.end(), begin, [](const Plan::RecordedNodes& recorded, PlanNodeId from) {
    return recorded.node_begin < from;
  });
  const auto stopped = [&] { return context_.cancellation.is_cancelled() ? context_.cancellation.status() : Status(); };
  const auto has_left = [&] { return must_stop() || (waits_at != nullptr && waits_at->has_value()); };
  for (; next != all.end() && next->node_begin < end; ++next) {
    if (const Status status = run_by_node(begin, next->node_begin, waits_at); !status.ok() || has_left()) {
      return status.ok() ? stopped() : status;
    }
    // If there are dead tensors, a node may be passed over.
    const bool has_dead = context_.dead != nullptr && dead_.any.load(std::memory_order_relaxed);
    const Status status =
        has_dead ? run_nodes_with_care(next->node_begin, next->node_end, waits_at) : run_record(*next, waits_at);
    if (!status.ok() || has_left()) return status.ok() ? stopped() : status;
    begin = next->node_end;
  }
  return run_by_node(begin, end, waits_at);
}

class Step::RecordedRun final : public StretchRun {
 public:
  RecordedRun(Step& step, const Plan::RecordedNodes& nodes, std::optional<PlanNodeId>* waits_at)
      : StretchRun({step.slots_.data(), step.slots_.size()}), step_(step), nodes_(nodes), waits_at_(waits_at) {}

  void issue() override { status_ = step_.run_kernels(nodes_.node_begin, nodes_.node_end, waits_at_); }
  bool rehearse(const StepContext& services, std::span<AnyTensor> slots) override {
    for (const PlanNodeId i : IndexRange(nodes_.node_begin, nodes_.node_end)) {
      if (step_.must_stop()) return false;
      const Plan::PlanNode& node = step_.plan_->nodes()[i];
      KernelContext context(slots.data(), node.wiring, step_.plan_->device(), services);
      node.kernel->run(context);
      if (!node.is_trusted) step_.check_outputs(context);
      for (std::int32_t r = node.release_begin; r < node.release_end; ++r) {
        slots[step_.plan_->released()[at(r)].position()].reset();
      }
    }
    return true;
  }
  void release() override {
    for (const PlanNodeId i : IndexRange(nodes_.node_begin, nodes_.node_end)) {
      step_.release_read(step_.plan_->nodes()[i]);
    }
  }
  const StepContext& services() const override { return step_.context_; }
  /// The status of the kernels.
  const Status& status() const { return status_; }

 private:
  Step& step_;
  const Plan::RecordedNodes& nodes_;
  std::optional<PlanNodeId>* const waits_at_;
  Status status_;
};

Status Step::run_record(const Plan::RecordedNodes& recorded, std::optional<PlanNodeId>* waits_at) {
  RecordedRun run(*this, recorded, waits_at);
  try {
    recorded.record->run(run);
  } catch (...) {
    return error_at(plan_->nodes()[recorded.node_begin], status_of_current_exception());
  }
  if (!run.status().ok()) return run.status();
  return context_.cancellation.is_cancelled() ? context_.cancellation.status() : Status();
}

/// Marks the outputs, too.
bool Step::has_dead_inputs(const Plan::PlanNode& node) noexcept {
  bool is_dead = false;
  for (std::int32_t i = 0; i < node.wiring.num_inputs; ++i) is_dead |= dead_.slots[node.wiring.inputs[i]] != 0;
  is_dead &= !node.kernel->traits().sees_dead_inputs;
  // A slot may have held a dead tensor of an earlier node.
  for (std::int32_t o = 0; o < node.wiring.num_outputs; ++o) {
    dead_.slots[node.wiring.first_output + o] = is_dead ? 1 : 0;
  }
  return is_dead;
}

/// The same loop for a step that is traced or may carry dead tensors.
Status Step::run_nodes_with_care(PlanNodeId begin, PlanNodeId end, std::optional<PlanNodeId>* waits_at) {
  const Plan::PlanNode* const nodes = plan_->nodes().data();
  AnyTensor* const slots = slots_.data();
  const DeviceContext& device = plan_->device();
  for (const PlanNodeId i : IndexRange(begin, end)) {
    const Plan::PlanNode& node = nodes[i.position()];
    if (must_stop()) return stopped_at(begin, i);
    KernelContext context(slots, node.wiring, device, context_);
    const std::int64_t start = stats_ == nullptr ? 0 : stats_->now_ns();
    try {
      if (!pass_dead(node)) {
        node.kernel->run(context);
        if (!node.is_trusted) check_outputs(context);
        if (stats_ != nullptr) stats_->record(context, start, stats_->now_ns());
      }
      release_after(node);
    } catch (const detail::WouldWait&) {
      *waits_at = i;
      return {};
    } catch (...) {
      return error_at(node, status_of_current_exception());
    }
  }
  return stopped_at(begin, end);
}

Status Step::run_sequential() {
  failed_.store(false, std::memory_order_relaxed);
  const detail::NoWaiting may_wait(false);
  Status status = run_nodes(PlanNodeId(0), plan_->nodes().end_index());
  if (!status.ok() && on_error_) on_error_(status);
  return status;
}

// ---- by units ----

ReadyUnit Step::ready(UnitId unit) noexcept {
  const Plan::Unit& planned = plan_->units()[unit];
  return {this, unit, planned.is_async && !planned.is_nested, planned.is_expensive, planned.is_brief};
}

void Step::start(std::shared_ptr<UnitQueue> queue, Done done) {
  const std::shared_ptr<Step> keep = shared_from_this();
  const IndexedVector<UnitId, Plan::Unit>& units = plan_->units();
  failed_.store(false, std::memory_order_relaxed);
  status_ = Status();
  queue_ = std::move(queue);
  context_.queue = queue_.get();
  is_attended_ = true;
  if (plan_->is_sequential() && units.empty()) return done(Status());
  done_ = std::move(done);
  if (plan_->is_sequential()) {
    outstanding_.store(1, std::memory_order_relaxed);
    const ReadyUnit whole = ready(UnitId(0));
    return queue_->push({&whole, 1});
  }
  outstanding_.store(static_cast<std::int32_t>(units.size()), std::memory_order_relaxed);
  for (const UnitId unit : units.indices()) pending_[unit].store(units[unit].pending, std::memory_order_relaxed);
  const IndexedVector<SlotId, std::int32_t>& counts = plan_->shared_read_counts();
  for (const SlotId slot : counts.indices()) {
    if (counts[slot] != 0) shared_reads_[slot].store(counts[slot], std::memory_order_relaxed);
  }
  for (std::size_t f = 0; f < plan_->feed_units().size(); ++f) fed_[f].store(false, std::memory_order_relaxed);
  if (on_fetch_) {
    for (std::size_t f = 0; f < plan_->fetch_units().size(); ++f) {
      if (!plan_->fetch_units()[f].is_valid()) on_fetch_(f);
    }
  }
  if (units.empty()) return std::exchange(done_, nullptr)(Status());
  std::vector<ReadyUnit> first;
  first.reserve(plan_->first_units().size());
  for (const UnitId unit : plan_->first_units()) first.push_back(ready(unit));
  // From here on the step may end at any time.
  const std::shared_ptr<UnitQueue> target = queue_;
  target->push(first);
}

void Step::feed_late(std::size_t i, AnyTensor tensor) {
  if (fed_[i].exchange(true, std::memory_order_acq_rel)) return;
  const std::shared_ptr<Step> keep = shared_from_this();
  slots_[plan_->feed_slots()[i]] = std::move(tensor);
  finish_elsewhere(plan_->feed_units()[i]);
}

void Step::give_up_feeds() {
  const std::shared_ptr<Step> keep = shared_from_this();
  for (std::size_t i = 0; i < plan_->feed_units().size(); ++i) {
    if (!fed_[i].exchange(true, std::memory_order_acq_rel)) finish_elsewhere(plan_->feed_units()[i]);
  }
}

void Step::finish_elsewhere(UnitId unit) {
  const std::shared_ptr<UnitQueue> queue = queue_;
  MadeUnits made;
  finish_unit(unit, made);
  queue->push(made.all());
}

void Step::run_unit(UnitId unit, MadeUnits& made, bool may_wait) {
  const Plan::Unit& planned = plan_->units()[unit];
  if (planned.is_async && !must_stop()) return run_async_unit(unit);
  std::optional<PlanNodeId> waits_at;
  Status status;
  if (must_stop()) {
    status = context_.cancellation.status();
  } else {
    const detail::NoWaiting no_waiting(!may_wait);
    status = run_nodes(planned.node_begin, planned.node_end, &waits_at);
  }
  if (waits_at.has_value()) return finish_in_pool(unit, *waits_at);
  if (!status.ok()) fail(status);
  finish_unit(unit, made);
}

/// Runs the rest of a unit, from that node on.
void Step::finish_in_pool(UnitId unit, PlanNodeId from) {
  const auto rest = [keep = shared_from_this(), unit, from] {
    const detail::NoWaiting may_wait(false);
    const PlanNodeId end = keep->plan_->units()[unit].node_end;
    const Status status = keep->must_stop() ? keep->context_.cancellation.status() : keep->run_nodes(from, end);
    if (!status.ok()) keep->fail(status);
    keep->finish_elsewhere(unit);
  };
  try {
    queue_->pool().schedule(rest);
  } catch (...) {  // no thread, or no memory
    rest();
  }
}

namespace detail {

/// An asynchronous kernel that the calling thread is starting. A kernel that throws drops its completion on the way.
/// The drop must not end the unit before the exception is known.
struct StartingKernel {
  explicit StartingKernel(const KernelContext& of) noexcept : context(&of), outer(std::exchange(innermost(), this)) {}
  StartingKernel(const StartingKernel&) = delete;
  StartingKernel& operator=(const StartingKernel&) = delete;
  ~StartingKernel() { innermost() = outer; }

  static StartingKernel*& innermost() noexcept {
    static constinit thread_local StartingKernel* frame = nullptr;
    return frame;
  }
  static StartingKernel* find(const KernelContext& of) noexcept {
    StartingKernel* frame = innermost();
    while (frame != nullptr && frame->context != &of) frame = frame->outer;
    return frame;
  }

  const KernelContext* context;
  StartingKernel* outer;
  bool has_dropped = false;
};

}  // namespace detail

void Step::run_async_unit(UnitId unit) {
  const Plan::PlanNode& node = plan_->nodes()[plan_->units()[unit].node_begin];
  KernelContext& context = async_contexts_[unit];
  const std::int64_t start = stats_ == nullptr ? 0 : stats_->now_ns();
  if (context_.dead != nullptr && pass_dead(node)) return end_async_unit(unit, start, Status());
  const std::shared_ptr<Step> keep = shared_from_this();
  // The run does not end while its kernel is being started: a later exception belongs to this run.
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  detail::StartingKernel starting(context);
  try {
    static_cast<const AsyncKernel&>(*node.kernel).run_async(context, [keep, unit, start](Status status) {
      if (Completion::was_dropped(status)) {
        if (detail::StartingKernel* here = detail::StartingKernel::find(keep->async_contexts_[unit])) {
          here->has_dropped = true;
          return;
        }
      }
      keep->end_async_unit(unit, start, std::move(status));
    });
    if (starting.has_dropped) end_async_unit(unit, start, Completion::dropped());
  } catch (...) {
    const Status status = status_of_current_exception();
    // If a kernel stored its completion elsewhere before it threw, the unit ends when the completion is called or
    // dropped.
    if (starting.has_dropped) {
      end_async_unit(unit, start, status);
    } else {
      fail(error_at(node, status));
    }
  }
  count_down();
}

void Step::end_async_unit(UnitId unit, std::int64_t start, Status status) {
  const Plan::PlanNode& node = plan_->nodes()[plan_->units()[unit].node_begin];
  KernelContext& context = async_contexts_[unit];
  const bool was_passed_over = context_.dead != nullptr && !node.is_trusted && node.wiring.num_outputs > 0 &&
                               dead_.slots[node.wiring.first_output] != 0;
  if (status.ok() && !node.is_trusted && !was_passed_over) {
    try {
      check_outputs(context);
    } catch (...) {
      status = status_of_current_exception();
    }
  }
  // The kernel was under way when the step was cancelled.
  if (status.ok() && context_.cancellation.is_cancelled()) status = context_.cancellation.status();
  if (status.ok()) {
    if (stats_ != nullptr) stats_->record(context, start, stats_->now_ns());
    release_after(node);
  } else {
    fail(error_at(node, status));
  }
  finish_elsewhere(unit);
}

void Step::finish_unit(UnitId unit, MadeUnits& made) {
  const Plan::Unit& planned = plan_->units()[unit];
  if (on_fetch_ && !failed_.load(std::memory_order_relaxed)) {
    for (std::int32_t f = planned.fetch_begin; f < planned.fetch_end; ++f) {
      on_fetch_(plan_->unit_fetches()[at(f)]);
    }
  }
  for (std::int32_t c = planned.consumer_begin; c < planned.consumer_end; ++c) {
    const UnitId consumer = plan_->unit_consumers()[at(c)];
    if (pending_[consumer].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (made.is_full()) {
      queue_->push(made.all());
      made.clear();
    }
    made.push_back(ready(consumer));
  }
  count_down();
}

void Step::count_down() {
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = status_;
  }
  queue_ = nullptr;
  std::exchange(done_, nullptr)(status);
}

void Step::fail(const Status& status) {
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
