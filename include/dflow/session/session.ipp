#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/optimize.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/place.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/local_rendezvous.hpp>
#include <dflow/runtime/stats_collector.hpp>
#include <dflow/session/compiled_step.hpp>
#include <dflow/session/session.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace dflow {

// ---- CompiledStep ----

DFLOW_INLINE std::unique_ptr<CompiledStep::Memory> CompiledStep::take_memory() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Memory> memory = std::move(idle_.back());
      idle_.pop_back();
      return memory;
    }
  }
  auto memory = std::make_unique<Memory>();
  for (const Part& part : parts) memory->steps.push_back(std::make_shared<Step>(part.plan));
  return memory;
}

DFLOW_INLINE void CompiledStep::give_back(std::unique_ptr<Memory> memory, bool has_failed) noexcept {
  for (const std::shared_ptr<Step>& step : memory->steps) step->reset(has_failed);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(memory));
}

DFLOW_INLINE void CompiledStep::check_feeds(std::span<const AnyTensor> tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const AnyTensor& tensor = tensors[i];
    const OutputInfo& info = feed_info[i];
    if (tensor.is_initialized() && tensor.dtype() == info.dtype && info.shape.is_compatible_with(tensor.shape())) continue;
    const Node& node = feed_edges[i].node();
    const std::string got = tensor.is_initialized()
                                ? str_cat(dflow::name(tensor.dtype()), " ", tensor.shape().to_string())
                                : std::string("an empty tensor");
    throw Error(invalid_argument(str_cat("'", feed_edges[i].name(), "' carries ", dflow::name(info.dtype), " ",
                                         info.shape.to_string(), ", but is fed ", got))
                    .with_node(node.op->name, node.name)
                    .with_location(node.where));
  }
}

// ---- Session ----

struct Session::State : std::enable_shared_from_this<Session::State> {
  State(const Graph& session_graph, SessionOptions session_options)
      : graph(session_graph.store()), options(std::move(session_options)) {}

  const GraphStore* graph;
  SessionOptions options;
  std::vector<std::shared_ptr<Device>> devices;
  StatefulKernels stateful;
  std::shared_mutex mutex;  ///< guards `compiled`, `stateful`, `placement`
  std::unordered_map<std::string, std::shared_ptr<CompiledStep>> compiled;
  std::string placement;
  std::atomic<std::uint64_t> next_step_id{1};

  std::shared_ptr<CompiledStep> compile(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                        std::span<const Operation> targets);
  void run(CompiledStep& compiled_step, const RunOptions& run_options, RunMetadata* metadata,
           std::span<AnyTensor> feed_tensors, std::span<AnyTensor> results);
  void start(std::shared_ptr<CompiledStep> compiled_step, const RunOptions& run_options, std::span<AnyTensor> feed_tensors,
             std::size_t num_results, AnyDone done);
  void check_belongs(const GraphStore* owner, std::string_view what) const;
};

namespace detail {

/// Hands out what a part of a step fetched: tensors that may outlive the session, so they keep their allocator.
DFLOW_INLINE void collect_fetches(const CompiledStep::Part& part, const Step& step, std::span<AnyTensor> results) {
  for (std::size_t f = 0; f < part.fetches.size(); ++f) {
    AnyTensor& result = results[part.fetches[f]];
    result = step.fetch(f);
    if (result.buffer() && result.buffer()->allocator() == part.allocator.get()) result.buffer()->keep_alive(part.allocator);
  }
}

template <class Number>
void append_bytes(std::string& key, Number number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// What one run needs besides its memory; shared by its parts, its deadline timer and its stop callback, which may still
/// be at work when the run has ended.
struct RunState : std::enable_shared_from_this<RunState> {
  CancellationSource cancellation;
  LocalRendezvous rendezvous;
  std::optional<StatsCollector> stats;
  std::optional<std::stop_callback<std::function<void()>>> stop;
  Clock* clock = nullptr;
  std::optional<TimerId> timer;
  std::mutex mutex;
  Status error;

  void cancel(const Status& status) {
    {
      const std::lock_guard lock(mutex);
      if (error.ok()) error = status;
    }
    cancellation.cancel(status);
    rendezvous.abort(status);
  }
  /// The error that ended the step, among those of its parts the first in time.
  Status first_error() {
    const std::lock_guard lock(mutex);
    return error;
  }
  void arm(const RunOptions& options, Clock* session_clock) {
    clock = session_clock;
    if (options.deadline) {
      timer = clock->schedule_at(clock->now() + *options.deadline,
                                 [self = shared_from_this()] { self->cancel(deadline_exceeded("the step's deadline has passed")); });
    }
    if (options.stop.stop_possible()) stop.emplace(options.stop, [self = shared_from_this()] { self->cancel(cancelled("stop was requested")); });
  }
  /// After it neither timer nor stop callback can fire any more.
  void disarm() {
    stop.reset();
    if (timer) clock->cancel(*timer);
    timer.reset();
  }
};

/// Waits for parts of a step that run elsewhere.
class PartsLatch {
 public:
  explicit PartsLatch(std::size_t parts) : remaining_(parts) {}
  void finish(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = status;
    if (--remaining_ == 0) all_done_.notify_all();
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return remaining_ == 0; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::size_t remaining_;
  Status status_;
};

/// Runs all parts of a step at once, the first one with the calling thread, and returns the first error in time.
DFLOW_INLINE Status run_parts(CompiledStep::Memory& memory, RunState& state) {
  const auto latch = std::make_shared<PartsLatch>(memory.steps.size());
  for (std::size_t p = 1; p < memory.steps.size(); ++p) {
    memory.steps[p]->start([latch](const Status& status) { latch->finish(status); });
  }
  latch->finish(memory.steps[0]->run_blocking());
  const Status status = latch->wait();
  return status.ok() || state.first_error().ok() ? status : state.first_error();
}

/// The tensors, memory and end of a step that nobody waits for.
struct AsyncRun {
  std::shared_ptr<void> session;  ///< devices and clock live at least as long as the run
  std::shared_ptr<RunState> state = std::make_shared<RunState>();
  std::shared_ptr<CompiledStep> compiled;
  std::unique_ptr<CompiledStep::Memory> memory;
  std::vector<AnyTensor> results;
  Session::AnyDone done;
  std::atomic<std::size_t> remaining{0};

  void finish_part(const Status& status) {
    if (!status.ok()) state->cancel(status);
    if (remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    state->disarm();
    const Status outcome = state->first_error();
    if (outcome.ok()) {
      for (std::size_t p = 0; p < memory->steps.size(); ++p) {
        collect_fetches(compiled->parts[p], *memory->steps[p], results);
      }
    } else {
      results.clear();
    }
    compiled->give_back(std::move(memory), !outcome.ok());
    std::exchange(done, nullptr)(outcome, std::move(results));
  }
};

}  // namespace detail

DFLOW_INLINE Session::Session(const Graph& graph, SessionOptions options)
    : state_(std::make_shared<State>(graph, std::move(options))) {
  SessionOptions& o = state_->options;
  if (o.num_threads < 0) throw Error(invalid_argument(str_cat("a session cannot have ", o.num_threads, " threads")));
  if (o.num_cpu_devices < 1) throw Error(invalid_argument(str_cat("a session cannot have ", o.num_cpu_devices, " devices")));
  if (o.clock == nullptr) o.clock = std::make_shared<RealClock>();
  if (!o.devices.empty()) {
    state_->devices = o.devices;
    return;
  }
  if (o.pool == nullptr) {
    const int threads = o.num_threads == 0 ? available_cores() : o.num_threads;
    if (threads == 1) {
      o.pool = std::make_shared<InlinePool>();
    } else {
      o.pool = std::make_shared<WorkStealingPool>(threads);
    }
  }
  if (o.allocator == nullptr) o.allocator = std::make_shared<PoolAllocator>(default_cpu_allocator());
  if (o.memory_limit_bytes != 0) {
    // The limit keeps what it limits alive.
    auto inner = o.allocator;
    o.allocator = std::shared_ptr<Allocator>(new LimitAllocator(*inner, o.memory_limit_bytes),
                                             [inner](Allocator* limited) { delete limited; });
  }
  o.cpu.reproducible |= o.reproducible;
  for (int i = 0; i < o.num_cpu_devices; ++i) {
    state_->devices.push_back(std::make_shared<CpuDevice>(CpuDeviceOptions{
        .name = str_cat("/job:localhost/replica:0/task:0/device:CPU:", i), .pool = o.pool, .allocator = o.allocator, .kernels = o.cpu}));
  }
}

DFLOW_INLINE Session::~Session() = default;
DFLOW_INLINE Session::Session(Session&&) noexcept = default;
DFLOW_INLINE Session& Session::operator=(Session&&) noexcept = default;

DFLOW_INLINE const std::vector<std::shared_ptr<Device>>& Session::devices() const noexcept { return state_->devices; }
DFLOW_INLINE const OpTable& Session::ops() const noexcept { return state_->options.ops; }
DFLOW_INLINE std::string Session::placement_log() const {
  const std::shared_lock lock(state_->mutex);
  return state_->placement;
}

DFLOW_INLINE void Session::State::check_belongs(const GraphStore* owner, std::string_view what) const {
  if (owner == graph) return;
  throw Error(invalid_argument(str_cat(what, owner == nullptr ? " is empty" : " belongs to another graph than the session's")));
}

DFLOW_INLINE std::shared_ptr<CompiledStep> Session::State::compile(std::span<const AnyOutput> feed_edges,
                                                                   std::span<const AnyOutput> edges,
                                                                   std::span<const Operation> targets) {
  std::string key;
  key.reserve(8 * (feed_edges.size() + edges.size()) + 4 * targets.size() + 8);
  for (const AnyOutput& edge : feed_edges) {
    check_belongs(edge.graph(), "a fed edge");
    detail::append_bytes(key, edge.endpoint());
  }
  detail::append_bytes(key, static_cast<std::int32_t>(-1));
  for (const AnyOutput& edge : edges) {
    check_belongs(edge.graph(), "a fetched edge");
    detail::append_bytes(key, edge.endpoint());
  }
  detail::append_bytes(key, static_cast<std::int32_t>(-2));
  for (const Operation& target : targets) {
    check_belongs(target.graph(), "a target");
    detail::append_bytes(key, target.node_id());
  }
  {
    const std::shared_lock lock(mutex);
    if (const auto found = compiled.find(key); found != compiled.end()) return found->second;
  }
  const std::unique_lock lock(mutex);
  if (const auto found = compiled.find(key); found != compiled.end()) return found->second;

  auto step = std::make_shared<CompiledStep>();
  std::vector<Endpoint> feed_points, fetch_points;
  std::vector<NodeId> target_ids;
  for (const AnyOutput& edge : feed_edges) {
    for (const Endpoint seen : feed_points) {
      if (seen == edge.endpoint()) throw Error(invalid_argument(str_cat("'", edge.name(), "' is fed twice")));
    }
    feed_points.push_back(edge.endpoint());
    step->feed_edges.push_back(edge);
    step->feed_info.push_back({edge.dtype(), edge.shape()});
  }
  for (const AnyOutput& edge : edges) fetch_points.push_back(edge.endpoint());
  for (const Operation& target : targets) target_ids.push_back(target.node_id());

  StepGraph pruned = prune(*graph, feed_points, fetch_points, target_ids);
  pruned = optimize(std::move(pruned), options.passes, options.ops, *devices.front());
  place(pruned, devices, options.ops, options.soft_placement);
  placement = devices.size() > 1 ? placement_text(pruned) : std::string();
  for (Partition& part : partition(std::move(pruned), devices)) {
    Device& device = *devices[part.device];
    step->parts.push_back({&device, device.shared_allocator(),
                           Plan::compile(std::move(part.graph), options.ops, device.context(), &stateful, options.inter_op,
                                         options.passes.buffer_reuse, devices[part.device]),
                           std::move(part.feeds), std::move(part.fetches)});
  }
  compiled.emplace(std::move(key), step);
  return step;
}

DFLOW_INLINE void Session::State::run(CompiledStep& compiled_step, const RunOptions& run_options, RunMetadata* metadata,
                                      std::span<AnyTensor> feed_tensors, std::span<AnyTensor> results) {
  compiled_step.check_feeds(feed_tensors);
  std::unique_ptr<CompiledStep::Memory> memory = compiled_step.take_memory();
  const std::uint64_t step_id = next_step_id.fetch_add(1, std::memory_order_relaxed);
  const bool is_plain = compiled_step.parts.size() == 1 && !compiled_step.parts[0].plan->has_async_nodes() &&
                        !run_options.deadline && !run_options.trace &&
                        !run_options.stop.stop_possible();
  std::shared_ptr<detail::RunState> run_state;
  if (!is_plain) {
    run_state = std::make_shared<detail::RunState>();
    if (run_options.trace) run_state->stats.emplace(step_id);
  }
  for (std::size_t p = 0; p < memory->steps.size(); ++p) {
    Step& step = *memory->steps[p];
    const CompiledStep::Part& part = compiled_step.parts[p];
    for (std::size_t f = 0; f < part.feeds.size(); ++f) step.feed(f, feed_tensors[part.feeds[f]]);
    step.context().step_id = step_id;
    if (!run_state) continue;
    step.context().rendezvous = &run_state->rendezvous;
    step.context().cancellation = run_state->cancellation.token();
    if (run_state->stats) step.set_stats(&*run_state->stats);
    step.set_on_error([&state = *run_state](const Status& status) { state.cancel(status); });
  }
  // A sole owner of the feeds may have its buffers reused by kernels: the slots hold them now.
  for (AnyTensor& tensor : feed_tensors) tensor = AnyTensor();
  if (run_state) run_state->arm(run_options, options.clock.get());

  Status status;
  if (memory->steps.size() == 1) {
    status = memory->steps[0]->run_blocking();
  } else {
    status = detail::run_parts(*memory, *run_state);
  }
  if (run_state) run_state->disarm();
  if (status.ok()) {
    for (std::size_t p = 0; p < memory->steps.size(); ++p) {
      detail::collect_fetches(compiled_step.parts[p], *memory->steps[p], results);
    }
  }
  if (metadata != nullptr && run_state && run_state->stats) metadata->stats = run_state->stats->finish();
  compiled_step.give_back(std::move(memory), !status.ok());
  throw_if_error(status);
}

DFLOW_INLINE void Session::State::start(std::shared_ptr<CompiledStep> compiled_step, const RunOptions& run_options,
                                        std::span<AnyTensor> feed_tensors, std::size_t num_results, AnyDone done) {
  compiled_step->check_feeds(feed_tensors);
  const auto run = std::make_shared<detail::AsyncRun>();
  run->session = shared_from_this();
  run->compiled = std::move(compiled_step);
  run->memory = run->compiled->take_memory();
  run->results.resize(num_results);
  run->done = std::move(done);
  run->remaining = run->memory->steps.size();
  const std::uint64_t step_id = next_step_id.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t p = 0; p < run->memory->steps.size(); ++p) {
    Step& step = *run->memory->steps[p];
    const CompiledStep::Part& part = run->compiled->parts[p];
    for (std::size_t f = 0; f < part.feeds.size(); ++f) step.feed(f, feed_tensors[part.feeds[f]]);
    step.context().step_id = step_id;
    step.context().rendezvous = &run->state->rendezvous;
    step.context().cancellation = run->state->cancellation.token();
    step.set_on_error([state = run->state.get()](const Status& status) { state->cancel(status); });
  }
  run->state->arm(run_options, options.clock.get());
  // The last part to finish gives the steps back; hold them until all have been started.
  const std::vector<std::shared_ptr<Step>> steps = run->memory->steps;
  for (const std::shared_ptr<Step>& step : steps) {
    step->start([run](const Status& status) { run->finish_part(status); });
  }
}

DFLOW_INLINE std::shared_ptr<CompiledStep> Session::compile(std::span<const AnyOutput> feed_edges,
                                                            std::span<const AnyOutput> edges,
                                                            std::span<const Operation> targets) {
  return state_->compile(feed_edges, edges, targets);
}

DFLOW_INLINE void Session::run_compiled(CompiledStep& step, std::span<AnyTensor> feed_tensors,
                                        std::span<AnyTensor> results) {
  state_->run(step, {}, nullptr, feed_tensors, results);
}

namespace detail {

DFLOW_INLINE void split_feeds(std::span<const Feed> feed_list, std::vector<AnyOutput>& edges, std::vector<AnyTensor>& tensors) {
  edges.reserve(feed_list.size());
  tensors.reserve(feed_list.size());
  for (const Feed& feed : feed_list) {
    edges.push_back(feed.output);
    tensors.push_back(feed.tensor);
  }
}

}  // namespace detail

DFLOW_INLINE void Session::run_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                                      std::span<const AnyOutput> edges, std::span<const Operation> targets,
                                      std::span<AnyTensor> results) {
  std::vector<AnyOutput> feed_edges;
  std::vector<AnyTensor> feed_tensors;
  detail::split_feeds(feed_list, feed_edges, feed_tensors);
  const std::shared_ptr<CompiledStep> step = state_->compile(feed_edges, edges, targets);
  state_->run(*step, options, metadata, feed_tensors, results);
}

DFLOW_INLINE void Session::run_async_erased(const RunOptions& options, std::span<const Feed> feed_list,
                                            std::span<const AnyOutput> edges, std::span<const Operation> targets,
                                            AnyDone done) {
  std::vector<AnyOutput> feed_edges;
  std::vector<AnyTensor> feed_tensors;
  detail::split_feeds(feed_list, feed_edges, feed_tensors);
  state_->start(state_->compile(feed_edges, edges, targets), options, feed_tensors, edges.size(), std::move(done));
}

}  // namespace dflow
