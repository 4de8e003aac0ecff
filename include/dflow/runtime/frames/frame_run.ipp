#pragma once

#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/runtime/frames/frame_run.hpp>
#include <dflow/runtime/stats_collector.hpp>

#include <algorithm>
#include <utility>

namespace dflow::detail {

FrameLoop::FrameLoop(std::shared_ptr<const FramePlan> plan, KernelContext& context, Completion done)
    : plan_(std::move(plan)),
      context_(context),
      done_(std::move(done)),
      cancellation_(context.step().cancellation),
      whole_(std::make_unique<FrameRun>(0, nullptr, nullptr)) {}

FrameLoop::~FrameLoop() {
  if (plan_->device().release != nullptr) let_go_of_all(*whole_);
}

void FrameLoop::start() {
  {
    const std::lock_guard lock(mutex_);
    FrameIteration& first = begin_iteration(*whole_);
    for (std::size_t f = 0; f < plan_->feeds().size(); ++f) {
      first.slots[plan_->feeds()[f]] = context_.take_input(static_cast<int>(f));
    }
    for (const auto& [merge, input] : plan_->frame(0).merges) {
      const FramePlan::PlannedNode& node = plan_->node(merge);
      take_merged(first, merge, input, first.slots[node.wiring.inputs[input]]);
    }
    for (const Index node : plan_->first_nodes()) make_ready(first, node, false);
    ++num_threads_;
  }
  drain();
}

// ---- threads ----

void FrameLoop::drain() {
  const NoWaiting may_wait(false);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (status_.ok() && cancellation_.is_cancelled()) fail(cancellation_.token().status());
    cancel_rest(lock);
    if (!status_.ok()) {
      ready_.clear();
      num_expensive_ = 0;
    }
    if (ready_.empty()) break;
    const Ready next = ready_.front();
    ready_.pop_front();
    const FramePlan::PlannedNode& node = plan_->node(next.node);
    if (node.is_expensive) --num_expensive_;
    if (node.kernel == nullptr || next.is_dead) {
      finish(next);
      continue;
    }
    ++num_running_;
    const bool wants_help = num_expensive_ > 0 && num_threads_ < plan_->num_threads();
    if (wants_help) ++num_threads_;
    const KernelContext::Wiring wiring = wiring_of(next);
    lock.unlock();
    if (wants_help) help();
    if (node.kernel->is_async()) {
      start_async(next, wiring);
      lock.lock();
      continue;
    }
    const Status status = run_kernel(next, wiring);
    lock.lock();
    --num_running_;
    status.ok() ? finish(next) : fail(status);
  }
  --num_threads_;
  end(lock);
}

/// Counted among the threads already.
void FrameLoop::help() {
  const std::shared_ptr<FrameLoop> self = shared_from_this();
  try {
    plan_->device().pool->schedule([self] { self->drain(); });
  } catch (...) {  // there is no memory, or no thread
    self->drain();
  }
}

/// Unlocks, and ends the run if nothing is left of it.
void FrameLoop::end(std::unique_lock<std::mutex>& lock) {
  if (is_done_ || num_running_ > 0 || !ready_.empty()) return;
  is_done_ = true;
  if (status_.ok()) give_outputs();
  const Status status = status_;
  Completion done = std::move(done_);
  lock.unlock();
  done(status);
}

KernelContext::Wiring FrameLoop::wiring_of(const Ready& ready) const {
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  KernelContext::Wiring wiring = node.wiring;
  if (!node.may_forward) return wiring;
  for (std::int32_t k = 0; k < std::min(wiring.num_inputs, 64); ++k) {
    if (ready.iteration->reads[wiring.inputs[k].position()] == 1) wiring.forwardable |= std::uint64_t{1} << k;
  }
  return wiring;
}

Status FrameLoop::run_kernel(const Ready& ready, const KernelContext::Wiring& wiring) {
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  FrameIteration& iteration = *ready.iteration;
  StatsCollector* const stats = iteration.context.stats;
  KernelContext context(iteration.slots.data(), wiring, plan_->device(), iteration.context);
  const std::int64_t start = stats == nullptr ? 0 : stats->now_ns();
  try {
    node.kernel->run(context);
    if (!node.is_trusted) check_outputs(node, context, iteration);
    if (stats != nullptr) stats->record(context, start, stats->now_ns());
  } catch (...) {
    return error_at(ready.node, status_of_current_exception());
  }
  return {};
}

/// A kernel under way that ends later. If the kernel throws while it is being started, the exception says more than a
/// completion that it drops.
struct FrameLoop::AsyncRun {
  AsyncRun(FrameIteration& iteration, const KernelContext::Wiring& of, const DeviceContext& device)
      : wiring(of), context(iteration.slots.data(), wiring, device, iteration.context) {}
  const KernelContext::Wiring wiring;
  KernelContext context;
  std::mutex mutex;
  bool is_starting = true;
  bool was_dropped = false;
};

void FrameLoop::start_async(const Ready& ready, const KernelContext::Wiring& wiring) {
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  StatsCollector* const stats = ready.iteration->context.stats;
  const std::int64_t start = stats == nullptr ? 0 : stats->now_ns();
  std::shared_ptr<AsyncRun> run;
  AsyncKernel::Done done;
  Status thrown;
  try {
    run = std::make_shared<AsyncRun>(*ready.iteration, wiring, plan_->device());
    done = [self = shared_from_this(), run, ready, start](Status status) {
      if (Completion::was_dropped(status)) {
        const std::lock_guard lock(run->mutex);
        run->was_dropped = run->is_starting;
        if (run->was_dropped) return;
      }
      self->end_async(ready, run->context, start, std::move(status));
    };
  } catch (...) {  // there is no memory to start it with
    thrown = status_of_current_exception();
    const std::lock_guard lock(mutex_);
    --num_running_;
    return fail(error_at(ready.node, thrown));
  }
  try {
    static_cast<const AsyncKernel&>(*node.kernel).run_async(run->context, std::move(done));
  } catch (...) {
    thrown = status_of_current_exception();
  }
  bool was_dropped = false;
  {
    const std::lock_guard lock(run->mutex);
    run->is_starting = false;
    was_dropped = run->was_dropped;
  }
  if (was_dropped) return end_async(ready, run->context, start, thrown.ok() ? Completion::dropped() : thrown);
  if (thrown.ok()) return;
  // It ends when the completion that it has put somewhere is called, or dropped.
  std::unique_lock lock(mutex_);
  fail(error_at(ready.node, thrown));
  cancel_rest(lock);
}

void FrameLoop::end_async(const Ready& ready, KernelContext& context, std::int64_t start, Status status) {
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  StatsCollector* const stats = ready.iteration->context.stats;
  if (status.ok()) {
    try {
      if (!node.is_trusted) check_outputs(node, context, *ready.iteration);
      if (stats != nullptr) stats->record(context, start, stats->now_ns());
    } catch (...) {
      status = status_of_current_exception();
    }
  }
  std::unique_lock lock(mutex_);
  --num_running_;
  status.ok() ? finish(ready) : fail(error_at(ready.node, status));
  cancel_rest(lock);
  if (num_threads_ > 0) return;  // which go on
  if (ready_.empty() || !status_.ok()) {
    ready_.clear();
    return end(lock);
  }
  ++num_threads_;
  lock.unlock();
  help();
}

void FrameLoop::check_outputs(const FramePlan::PlannedNode& node, KernelContext& context,
                              const FrameIteration& iteration) const {
  for (int o = 0; o < context.num_outputs(); ++o) {
    const AnyTensor& output = context.output(o);
    if (!output.is_initialized()) {
      // Dead, as the kernel has said.
      if (iteration.dead.slots[node.wiring.first_output + o] != 0) continue;
      throw_error(Status::internal(str_cat("the kernel has left output ", o, " unset")));
    }
    if (output.dtype() == context.output_dtype(o)) continue;
    throw_error(
        Status::internal(str_cat("the kernel set output ", o, " to a tensor of type ", dtype_name(output.dtype()))));
  }
}

Status FrameLoop::error_at(Index node, const Status& status) const {
  const Node& of = *plan_->node(node).node;
  return status.with_node(of.op->name, without_copy(of.name)).with_device(plan_->device().name).with_location(of.where);
}

void FrameLoop::fail(const Status& status) {
  if (!status_.ok()) return;
  status_ = status;
  must_cancel_ = true;
}

/// Makes all waits give up. A wait may end in this thread, so the mutex is not held meanwhile.
void FrameLoop::cancel_rest(std::unique_lock<std::mutex>& lock) {
  if (!std::exchange(must_cancel_, false)) return;
  const Status status = status_;
  lock.unlock();
  cancellation_.cancel(status);
  lock.lock();
}

// ---- iterations ----

FrameIteration& FrameLoop::begin_iteration(FrameRun& run) {
  const FramePlan::Frame& frame = plan_->frame(run.frame);
  std::unique_ptr<FrameIteration> made;
  if (!run.idle.empty()) {
    made = std::move(run.idle.back());
    run.idle.pop_back();
  } else {
    made = std::make_unique<FrameIteration>();
    made->run = &run;
    made->slots.resize(static_cast<std::size_t>(frame.num_slots));
    made->dead.slots.resize(static_cast<std::size_t>(frame.num_slots));
    made->context = context_.step();
    made->context.cancellation = cancellation_.token();
    made->context.receive_cancellation = cancellation_.token();
    made->context.dead = &made->dead;
    for (const auto& [slot, value] : frame.constants) made->slots[slot] = value;
    if (run.within != nullptr) {
      made->frame = str_cat(run.within->context.frame, "/", run.within->context.iteration, "/", frame.name);
      made->context.frame = made->frame;
    }
  }
  made->number = ++run.newest;
  if (run.within != nullptr) made->context.iteration = made->number;
  made->pending = frame.pending;
  made->num_dead.assign(frame.pending.size(), 0);
  made->is_taken.assign(frame.pending.size(), 0);
  made->reads = frame.reads;
  for (const SlotId slot : frame.late) made->dead.slots[slot] = 1;
  FrameIteration& iteration = *made;
  run.iterations.push_back(std::move(made));
  run.dead_exits.clear();
  if (run.within == nullptr) return iteration;
  for (const auto& [merge, input] : frame.merges) {
    const FramePlan::PlannedNode& node = plan_->node(merge);
    take_merged(iteration, merge, input, iteration.slots[node.wiring.inputs[input]]);
  }
  for (const FrameRun::Invariant& each : run.invariants) {
    const FramePlan::PlannedNode& enter = plan_->node(each.node);
    iteration.slots[enter.wiring.first_output] = each.value;
    tell(iteration, each.node, each.is_dead);
  }
  return iteration;
}

/// Ends the iterations at the front that have nothing left to do; if the frame has no iteration left, ends the frame.
void FrameLoop::end_iterations(FrameRun& run) {
  while (!run.iterations.empty()) {
    FrameIteration& oldest = *run.iterations.front();
    if (oldest.num_ready > 0 || !oldest.inner.empty() || (oldest.number == 0 && run.pending_enters > 0)) return;
    if (run.within == nullptr) return;  // its slots are the outputs
    for (const SlotId slot : oldest.slots.indices()) {
      if (!FramePlan::is_kept(oldest.reads[slot.position()])) let_go(oldest, slot);
    }
    std::fill(oldest.dead.slots.begin(), oldest.dead.slots.end(), std::uint8_t{0});
    run.idle.push_back(std::move(run.iterations.front()));
    run.iterations.pop_front();
    if (run.waiting.empty()) continue;
    FrameIteration& next = begin_iteration(run);
    for (FrameRun::Next& each : std::exchange(run.waiting, {})) give_next(next, each.node, std::move(each.value));
  }
  end_run(run);
}

void FrameLoop::end_run(FrameRun& run) {
  FrameIteration& around = *run.within;
  for (const Index node : run.dead_exits) {
    // An exit that was alive in an earlier iteration has told so.
    if (std::find(run.alive_exits.begin(), run.alive_exits.end(), node) == run.alive_exits.end()) {
      tell(around, node, true);
    }
  }
  FrameRun& outer = *run.outer;
  around.inner.erase(run.frame);  // the run is gone
  end_iterations(outer);
}

// ---- outputs of nodes ----

void FrameLoop::finish(const Ready& ready) {
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  FrameIteration& iteration = *ready.iteration;
  try {
    switch (node.role) {
      case OpRole::enter:
        pass_enter(ready);
        break;
      case OpRole::exit:
        pass_exit(ready);
        break;
      case OpRole::next_iteration:
        pass_next(ready);
        break;
      case OpRole::switch_op:
        if (!ready.is_dead) pass_switch(ready);
        tell(iteration, ready.node, ready.is_dead);
        break;
      case OpRole::loop_cond:
        if (!ready.is_dead) {
          AnyTensor condition = take(iteration, node.wiring.inputs[0]);
          if (condition.rank() != 0) {
            throw_error(Status::invalid_argument(str_cat("the condition is a bool ", condition.shape().to_string())));
          }
          iteration.slots[node.wiring.first_output] = std::move(condition);
        }
        tell(iteration, ready.node, ready.is_dead);
        break;
      default:  // of a Merge the value has been set when it came
        if (node.is_late_constant && !ready.is_dead) iteration.dead.slots[node.wiring.first_output] = 0;
        tell(iteration, ready.node, ready.is_dead);
        break;
    }
    if (node.role != OpRole::merge) {
      for (std::int32_t i = 0; i < node.wiring.num_inputs; ++i) has_read(iteration, node.wiring.inputs[i]);
    }
    --iteration.num_ready;
    end_iterations(*iteration.run);
  } catch (...) {
    return fail(error_at(ready.node, status_of_current_exception()));
  }
}

void FrameLoop::pass_switch(const Ready& ready) {
  FrameIteration& iteration = *ready.iteration;
  const KernelContext::Wiring& wiring = plan_->node(ready.node).wiring;
  const AnyTensor& side = iteration.slots[wiring.inputs[1]];
  if (side.dtype() != DType::boolean || side.rank() != 0) {
    throw_error(Status::invalid_argument(
        str_cat("the side is a ", dtype_name(side.dtype()), " ", side.shape().to_string(), ", not one bool")));
  }
  const int taken = *Tensor<bool>::of(side).data() ? 1 : 0;
  iteration.slots[wiring.first_output + taken] = take(iteration, wiring.inputs[0]);
  iteration.dead.slots[wiring.first_output + (1 - taken)] = 1;
}

void FrameLoop::pass_enter(const Ready& ready) {
  FrameIteration& around = *ready.iteration;
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  std::unique_ptr<FrameRun>& inner = around.inner[node.gives_to];
  if (inner == nullptr) {
    inner = std::make_unique<FrameRun>(node.gives_to, around.run, &around);
    inner->pending_enters = plan_->frame(node.gives_to).num_enters;
    begin_iteration(*inner);
  }
  FrameRun& run = *inner;
  AnyTensor value = ready.is_dead ? AnyTensor() : take(around, node.wiring.inputs[0]);
  --run.pending_enters;
  if (node.is_constant) {
    for (const std::unique_ptr<FrameIteration>& each : run.iterations) {
      each->slots[node.wiring.first_output] = value;
      tell(*each, ready.node, ready.is_dead);
    }
    run.invariants.push_back({ready.node, std::move(value), ready.is_dead});
  } else {
    FrameIteration& first = *run.iterations.front();
    first.slots[node.wiring.first_output] = std::move(value);
    tell(first, ready.node, ready.is_dead);
  }
  end_iterations(run);
}

void FrameLoop::pass_exit(const Ready& ready) {
  FrameIteration& iteration = *ready.iteration;
  FrameRun& run = *iteration.run;
  const FramePlan::PlannedNode& node = plan_->node(ready.node);
  if (ready.is_dead) {
    if (iteration.number == run.newest) run.dead_exits.push_back(ready.node);
    return;
  }
  if (std::find(run.alive_exits.begin(), run.alive_exits.end(), ready.node) != run.alive_exits.end()) {
    throw_error(Status::invalid_argument("it is alive in two iterations of its frame"));
  }
  run.alive_exits.push_back(ready.node);
  run.within->slots[node.wiring.first_output] = take(iteration, node.wiring.inputs[0]);
  tell(*run.within, ready.node, false);
}

void FrameLoop::pass_next(const Ready& ready) {
  if (ready.is_dead) return;
  FrameIteration& iteration = *ready.iteration;
  FrameRun& run = *iteration.run;
  AnyTensor value = take(iteration, plan_->node(ready.node).wiring.inputs[0]);
  if (iteration.number < run.newest) {
    const auto ahead = static_cast<std::size_t>(iteration.number + 1 - run.iterations.front()->number);
    return give_next(*run.iterations[ahead], ready.node, std::move(value));
  }
  if (static_cast<std::int64_t>(run.iterations.size()) >= plan_->frame(run.frame).parallel_iterations) {
    run.waiting.push_back({ready.node, std::move(value)});
    return;
  }
  give_next(begin_iteration(run), ready.node, std::move(value));
}

void FrameLoop::give_next(FrameIteration& to, Index node, AnyTensor value) {
  const FramePlan::PlannedNode& next = plan_->node(node);
  take_merged(to, next.merge, next.place, std::move(value));
}

void FrameLoop::tell(FrameIteration& to, Index node, bool is_dead) {
  const FramePlan::PlannedNode& from = plan_->node(node);
  for (const FramePlan::Edge& edge : plan_->edges_of(from)) {
    const bool is_edge_dead =
        is_dead || (edge.output >= 0 && to.dead.slots[from.wiring.first_output + edge.output] != 0);
    deliver(to, edge, is_edge_dead);
  }
}

void FrameLoop::deliver(FrameIteration& to, const FramePlan::Edge& edge, bool is_dead) {
  const FramePlan::PlannedNode& node = plan_->node(edge.node);
  const auto at = static_cast<std::size_t>(node.number);
  if (node.role == OpRole::merge && edge.input >= 0) {
    const SlotId slot = node.wiring.inputs[edge.input];
    if (!is_dead) {
      take_merged(to, edge.node, edge.input, to.slots[slot]);
    } else if (++to.num_dead[at] == node.num_data && to.is_taken[at] == 0 && to.pending[at] == 0) {
      make_ready(to, edge.node, true);
    }
    return has_read(to, slot);
  }
  --to.pending[at];
  if (node.role == OpRole::merge) {
    if (to.pending[at] > 0) return;
    if (to.is_taken[at] != 0) return make_ready(to, edge.node, false);
    if (to.num_dead[at] == node.num_data) make_ready(to, edge.node, true);
    return;
  }
  if (is_dead) ++to.num_dead[at];
  if (to.pending[at] == 0) {
    const bool passes = to.num_dead[at] > 0 && (node.kernel == nullptr || !node.kernel->traits().sees_dead_inputs);
    make_ready(to, edge.node, passes);
  }
}

/// The first one counts.
void FrameLoop::take_merged(FrameIteration& to, Index merge, Index number, AnyTensor value) {
  const FramePlan::PlannedNode& node = plan_->node(merge);
  const auto at = static_cast<std::size_t>(node.number);
  if (to.is_taken[at] != 0) return;
  // If an edge carries lists, the shape is the shape of their elements.
  const OutputInfo& declared = node.node->outputs[0];
  if (!is_handle(declared.dtype) && !declared.shape.is_compatible_with(value.shape())) {
    return fail(error_at(
        merge, Status::invalid_argument(str_cat("input ", number, " has shape ", value.shape().to_string(),
                                                ", and the shape is said to be ", declared.shape.to_string()))));
  }
  to.is_taken[at] = 1;
  to.slots[node.wiring.first_output] = std::move(value);
  to.slots[node.wiring.first_output + 1] = Tensor<std::int32_t>(number);
  if (to.pending[at] == 0) make_ready(to, merge, false);
}

void FrameLoop::make_ready(FrameIteration& to, Index node, bool is_dead) {
  ++to.num_ready;
  const FramePlan::PlannedNode& of = plan_->node(node);
  if (of.is_expensive) ++num_expensive_;
  const bool is_first = of.kernel == nullptr || of.kernel->is_async() || is_dead;
  is_first ? ready_.push_front({&to, node, is_dead}) : ready_.push_back({&to, node, is_dead});
}

AnyTensor FrameLoop::take(FrameIteration& from, SlotId slot) {
  return from.reads[slot.position()] == 1 ? std::move(from.slots[slot]) : from.slots[slot];
}

void FrameLoop::has_read(FrameIteration& iteration, SlotId slot) {
  if (--iteration.reads[slot.position()] == 0) let_go(iteration, slot);
}

void FrameLoop::let_go(FrameIteration& iteration, SlotId slot) { let_go(iteration.slots[slot]); }

/// To a device that may not have finished with it.
void FrameLoop::let_go(AnyTensor& tensor) {
  const DeviceContext& device = plan_->device();
  if (device.release != nullptr && tensor.is_initialized()) {
    device.release(device, std::exchange(tensor, AnyTensor()));
  } else {
    tensor.reset();
  }
}

/// Lets go of the rest of a run: after an error, tensors that a device is not done with.
// NOLINTNEXTLINE(misc-no-recursion): frames are nested as deep as a program nests its loops.
void FrameLoop::let_go_of_all(FrameRun& run) {
  for (const std::unique_ptr<FrameIteration>& each : run.iterations) {
    for (const auto& [frame, inner] : each->inner) let_go_of_all(*inner);
    for (const SlotId slot : each->slots.indices()) let_go(*each, slot);
  }
  for (FrameRun::Invariant& each : run.invariants) let_go(each.value);
  for (FrameRun::Next& each : run.waiting) let_go(each.value);
}

/// An output that no frame has given is dead.
void FrameLoop::give_outputs() {
  FrameIteration& iteration = *whole_->iterations.front();
  for (std::size_t f = 0; f < plan_->fetches().size(); ++f) {
    const SlotId slot = plan_->fetches()[f];
    const AnyTensor& tensor = iteration.slots[slot];
    if (tensor.is_initialized() && iteration.dead.slots[slot] == 0) {
      context_.set_output(static_cast<int>(f), tensor);
    } else {
      context_.set_output_dead(static_cast<int>(f));
    }
  }
}

}  // namespace dflow::detail
