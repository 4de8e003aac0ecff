#pragma once

#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/compile_step.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/runtime/default_devices.hpp>
#include <dflow/session/session_state.hpp>

#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

void begin_metadata(const RunOptions& run_options, RunMetadata* metadata) {
  if (metadata != nullptr) *metadata = RunMetadata();
  if (run_options.trace && metadata == nullptr) {
    throw_error(Status::invalid_argument("a trace needs metadata to be written to"));
  }
}

}  // namespace detail

// ---- options of a session ----

Session::State::State(const GraphStore& session_graph, SessionOptions session_options)
    : graph(&session_graph), options(std::move(session_options)), cache(options.step_cache) {
  SessionOptions& o = options;
  if (o.num_threads < 0)
    throw_error(Status::invalid_argument(str_cat("a session cannot have ", o.num_threads, " threads")));
  if (o.num_cpu_devices < 1)
    throw_error(Status::invalid_argument(str_cat("a session cannot have ", o.num_cpu_devices, " devices")));
  if (o.clock == nullptr) o.clock = std::make_shared<RealClock>();
  if (o.callbacks == nullptr) o.callbacks = std::make_shared<ElasticPool>(ElasticPoolOptions{.name = "dflow-call"});
  if (o.incarnation == 0) o.incarnation = system_seed();
  devices = o.devices;
  std::vector<DeviceInfo> infos;
  if (o.target != nullptr) {
    take_target();
  } else if (devices.empty()) {
    make_devices();
  }
  for (const std::shared_ptr<Device>& device : devices) {
    if (device == nullptr) throw_error(Status::invalid_argument("a session cannot have a null device"));
    infos.push_back(device->info());
  }
  check_devices(infos);
  choose_pool();
  compiler = std::make_unique<PartCompiler>(
      devices, o.ops.kernels(),
      PartCompiler::Options{pool, o.clock.get(), o.inter_op, o.passes.buffer_reuse, o.passes.joint_kernels});
  kernels.assign(compiler->kernels().begin(), compiler->kernels().end());
  // In the memory of the devices' process, but no device of it.
  DeviceName here = DeviceName::parse(o.target != nullptr ? o.target->task() : devices.front()->name());
  here.type = client.type = "CLIENT";
  here.id = 0;
  client.name = here.to_string();
  client.incarnation = o.target != nullptr ? o.target->incarnation() : o.incarnation;
  if (o.target != nullptr) {
    if (remote_session != nullptr) return;
    remote = o.target->open_tasks(o);
    for (const DeviceInfo& device : remote->devices()) {
      infos.push_back(device);
      kernels.push_back(o.ops.kernels().for_type(device.type));
    }
    if (infos.empty()) throw_error(Status::invalid_argument("the session's target has no devices"));
  }
  if (o.passes.fusion) fusions = Fusions(kernels);
  if (o.passes.chains) chains = Chains(kernels);
  placement = std::make_unique<Placement>(std::move(infos), kernels, o.soft_placement, o.ops.ops());
}

namespace detail {

std::shared_ptr<ThreadPool> make_session_pool(int num_threads) {
  const int threads = num_threads == 0 ? available_cores() : num_threads;
  if (threads != 1) return std::make_shared<WorkStealingPool>(threads);
  // The caller's thread does the work; asynchronous runs have one of their own.
  return std::make_shared<ElasticPool>(ElasticPoolOptions{.max_threads = 1, .name = "dflow"});
}

}  // namespace detail

void Session::State::take_target() {
  SessionOptions& o = options;
  if (!o.devices.empty())
    throw_error(Status::invalid_argument("a session cannot have both a target and devices of its own"));
  remote_session = o.target->open_session(*graph, o);
  o.devices = devices = o.target->local_devices();
  if (!devices.empty() || o.pool != nullptr) return;
  o.pool = detail::make_session_pool(remote_session != nullptr ? 1 : o.num_threads);
}

void Session::State::make_devices() {
  SessionOptions& o = options;
  if (o.pool == nullptr) o.pool = detail::make_session_pool(o.num_threads);
  if (o.allocator == nullptr) o.allocator = std::make_shared<PoolAllocator>(default_cpu_allocator());
  if (o.memory_limit_bytes != 0) o.allocator = std::make_shared<LimitAllocator>(o.allocator, o.memory_limit_bytes);
  devices = make_default_devices({.count = o.num_cpu_devices,
                                  .incarnation = o.incarnation,
                                  .pool = o.pool,
                                  .allocator = o.allocator,
                                  .reproducible = o.reproducible,
                                  .draw_seed = o.draw_seed,
                                  .files = o.files});
}

namespace detail {

/// In upper case, as in names of devices.
bool is_device_type(std::string_view type) {
  const StatusOr<DeviceName> name = DeviceName::try_parse(str_cat("/device:", type, ":0"));
  return name.ok() && name->type == type;
}

/// Checks that a device's context and its info agree.
void check_device(const DeviceContext& context, const DeviceInfo& info) {
  const DeviceName name = DeviceName::parse(context.name);
  const auto reject = [](std::string message) { throw_error(Status::invalid_argument(std::move(message))); };
  if (!name.is_full()) reject(str_cat("'", context.name, "' is not a full device name"));
  if (name.to_string() != context.name) {
    reject(str_cat("device '", context.name, "' must be named '", name.to_string(), "'"));
  }
  if (*name.type != context.type) {
    reject(str_cat("device '", context.name, "' cannot be of type '", context.type, "'"));
  }
  if (info.name != context.name || info.type != context.type || info.incarnation != context.incarnation) {
    reject(str_cat("device '", context.name, "' says in its info that it is '", info.name, "' of type '", info.type,
                   "' and incarnation ", info.incarnation, ", not '", context.type, "' and ", context.incarnation));
  }
  if (info.uses_host_memory() != (context.memory == nullptr)) {
    reject(str_cat("device '", context.name, "' says in its info that it has ", info.uses_host_memory() ? "no " : "",
                   "memory of its own, and has ", info.uses_host_memory() ? "some" : "none"));
  }
  if (context.pool == nullptr || context.allocator == nullptr || context.host_allocator == nullptr ||
      context.resources == nullptr) {
    reject(str_cat("device '", context.name, "' has no pool, allocator or resources"));
  }
}

}  // namespace detail

void Session::State::check_devices(std::span<const DeviceInfo> infos) const {
  const SessionOptions& o = options;
  std::set<std::string_view> names;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const DeviceContext& context = devices[d]->context();
    detail::check_device(context, infos[d]);
    if (!names.insert(context.name).second) {
      throw_error(Status::invalid_argument(str_cat("two devices of a session are named '", context.name, "'")));
    }
  }
  for (const KernelTable& table : o.ops.kernels().tables()) {
    if (detail::is_device_type(table.device_type())) continue;
    throw_error(Status::invalid_argument(str_cat("a table of '", table.device_type(),
                                                 "' kernels serves no device: a device's type is a "
                                                 "word in upper case")));
  }
  if (o.devices.empty() && o.target == nullptr) return;
  if (o.allocator != nullptr || o.memory_limit_bytes != 0 || o.num_cpu_devices != 1 || o.draw_seed != nullptr ||
      o.reproducible || o.files != nullptr) {
    throw_error(Status::invalid_argument(str_cat("a session with ",
                                                 o.target != nullptr ? "a target" : "devices of its caller's",
                                                 " cannot set the number of devices, allocator, memory limit, seeds, "
                                                 "files or reproducibility")));
  }
}

/// The caller's pool, or the widest pool of its devices. A device that computes on a thread of its own may have a pool
/// that runs everything in place. It would hold up the units of all other devices, and the thread of an asynchronous
/// run.
void Session::State::choose_pool() {
  pool = options.pool.get();
  for (const std::shared_ptr<Device>& device : devices) {
    ThreadPool* const its = device->context().pool;
    if (options.pool == nullptr && (pool == nullptr || its->num_threads() > pool->num_threads())) pool = its;
  }
  host_allocator = options.allocator != nullptr ? options.allocator.get() : &default_cpu_allocator();
}

StepLimits Session::State::limits_of(const RunOptions& run_options) const {
  StepLimits limits;
  limits.stop = run_options.stop;
  if (run_options.deadline) {
    if (*run_options.deadline <= Duration::zero())
      throw_error(Status::deadline_exceeded("the step's deadline has passed"));
    limits.deadline = options.clock->after(*run_options.deadline);
  }
  return limits;
}

void Session::State::check_limits(const StepLimits& limits) const {
  if (limits.stop.stop_requested()) throw_error(Status::cancelled("stop was requested"));
  if (limits.deadline != Clock::never && options.clock->now() >= limits.deadline) {
    throw_error(Status::deadline_exceeded("the step's deadline has passed"));
  }
}

// ---- compiling ----

void Session::State::check_belongs(const Operation& of, std::string_view what, std::size_t i) const {
  if (of.is_of(graph)) [[likely]]
    return;
  if (!of.is_valid()) throw_error(Status::invalid_argument(str_cat(what, " ", i, " is empty")));
  if (of.is_dangling())
    throw_error(Status::invalid_argument(str_cat(what, " ", i, " belongs to a graph that is gone")));
  const Node& node = of.node();
  throw_error(Status::invalid_argument(str_cat(what, " ", i, " belongs to another graph than the session's"))
                  .with_node(node.op->name, node.name)
                  .with_location(node.where));
}

void Session::State::check_edge(const AnyOutput& edge, std::string_view what, std::size_t i) const {
  check_belongs(edge.operation(), what, i);
  const Endpoint at = edge.endpoint();
  if (!at.node.is_valid() || at.node.position() >= graph->size()) {
    throw_error(Status::not_found(str_cat(what, " ", i, ": there is no node ", at.node.value())));
  }
  const Node& node = graph->node(at.node);
  if (at.index >= 0 && static_cast<std::size_t>(at.index) < node.outputs.size()) return;
  throw_error(Status::invalid_argument(
                  str_cat(what, " ", i, ": the node has ", node.outputs.size(), " outputs, and no number ", at.index))
                  .with_node(node.op->name, node.name)
                  .with_location(node.where));
}

std::string Session::State::signature_of(const FedEdges& fed, std::span<const AnyOutput> edges,
                                         std::span<const Operation> targets) const {
  std::string signature;
  signature.reserve(8 * (fed.size() + edges.size() + 1) + 4 * targets.size());
  const auto append = [&](const auto& number) {
    signature.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (std::size_t i = 0; i < fed.size(); ++i) {
    check_belongs(fed[i].operation(), "fed edge", i);
    append(fed[i].endpoint());
  }
  append(std::int32_t{-1});
  for (std::size_t i = 0; i < edges.size(); ++i) {
    check_belongs(edges[i].operation(), "fetched edge", i);
    append(edges[i].endpoint());
  }
  append(std::int32_t{-2});
  for (std::size_t i = 0; i < targets.size(); ++i) {
    check_belongs(targets[i], "target", i);
    append(targets[i].node_id());
  }
  return signature;
}

std::shared_ptr<CompiledStep> Session::State::compile(const FedEdges& fed, std::span<const AnyOutput> edges,
                                                      std::span<const Operation> targets, const StepLimits& limits,
                                                      bool streams) {
  if (edges.empty() && targets.empty()) throw_error(Status::invalid_argument("a step must fetch or run something"));
  std::string signature = signature_of(fed, edges, targets);
  if (streams) signature += '+';
  if (std::shared_ptr<CompiledStep> found = cache.find(signature)) return found;
  return cache.insert(std::move(signature), make_step(fed, edges, targets, limits, streams));
}

namespace detail {

/// A body runs when it is called, with new values each time.
inline void require_outside(const Node& node, std::string_view what) {
  if (!node.function.is_valid()) return;
  throw_error(Status::invalid_argument(str_cat("'", node.name, "' is part of the body of a function and cannot be ",
                                               what, ": fetch what the call gives"))
                  .with_node(node.op->name, node.name)
                  .with_location(node.where));
}

}  // namespace detail

StepRequest Session::State::request_of(const FedEdges& fed, std::span<const AnyOutput> edges,
                                       std::span<const Operation> targets, bool streams) const {
  StepRequest request;
  request.streams = streams;
  for (std::size_t i = 0; i < fed.size(); ++i) request.feeds.push_back(fed[i].endpoint());
  for (const AnyOutput& edge : edges) request.fetches.push_back(edge.endpoint());
  for (const Operation& target : targets) {
    request.targets.push_back(target.node_id());
    if (target.node_id().is_valid() && target.node_id().position() < graph->size()) {
      detail::require_outside(target.node(), "run");
    }
  }
  return request;
}

/// Checked here, since a step that was compiled before is found without a look at its nodes.
std::shared_ptr<CompiledStep> Session::State::describe_step(const FedEdges& fed,
                                                            std::span<const AnyOutput> edges) const {
  for (std::size_t i = 0; i < fed.size(); ++i) check_edge(fed[i], "fed edge", i);
  for (std::size_t i = 0; i < edges.size(); ++i) check_edge(edges[i], "fetched edge", i);
  for (std::size_t i = 0; i < fed.size(); ++i) detail::require_outside(fed[i].node(), "fed");
  for (const AnyOutput& edge : edges) detail::require_outside(edge.node(), "fetched");
  auto step = std::make_shared<CompiledStep>();
  step->pool = pool;
  step->graph = graph->keep_nodes();
  step->feeds.reserve(fed.size());
  for (std::size_t i = 0; i < fed.size(); ++i) {
    const AnyOutput& edge = fed[i];
    if (is_handle(edge.dtype())) {
      throw_error(Status::invalid_argument(str_cat("'", edge.name(), "' carries a handle, which cannot be fed")));
    }
    step->feeds.push_back({&edge.node(), edge.endpoint().index, {edge.dtype(), edge.shape()}});
  }
  step->fetched.reserve(edges.size());
  for (const AnyOutput& edge : edges) {
    step->fetched.push_back(&edge.node());
    if (!is_handle(edge.dtype())) continue;
    throw_error(Status::invalid_argument(str_cat("'", edge.name(), "' carries a handle, which cannot be fetched"))
                    .with_node(edge.node().op->name, edge.node().name)
                    .with_location(edge.node().where));
  }
  return step;
}

void Session::State::add_parts(CompiledStep& step, std::vector<Partition> parts, const StepLimits& limits,
                               FunctionRef<void()>* check) {
  std::map<std::string, std::vector<RemotePartition>> remote_parts;  // by task
  for (Partition& part : parts) {
    if (part.device < devices.size()) {
      step.parts.push_back(compiler->compile(std::move(part), limits, check, step.streams));
      continue;
    }
    const DeviceInfo& device = placement->devices()[part.device];
    step.num_remote_nodes += part.graph.nodes.size();
    remote_parts[memory_of(device).task].push_back({device.name, std::move(part.graph)});
  }
  for (auto& [task, partitions] : remote_parts) step.shares.push_back(remote->share(task, std::move(partitions)));
}

std::shared_ptr<CompiledStep> Session::State::make_step(const FedEdges& fed, std::span<const AnyOutput> edges,
                                                        std::span<const Operation> targets, const StepLimits& limits,
                                                        bool streams) {
  if (remote_session != nullptr) return make_remote_step(fed, edges, targets, streams);
  auto check = [&] { check_limits(limits); };
  FunctionRef<void()> check_ref(check);
  FunctionRef<void()>* const checked = limits.any() ? &check_ref : nullptr;

  std::shared_ptr<CompiledStep> step = describe_step(fed, edges);
  step->streams = streams;

  std::vector<CollectiveDevice> here;
  here.reserve(devices.size());
  for (const std::shared_ptr<Device>& each : devices) here.push_back({&each->context(), each->collectives()});
  auto note = [&](const StepGraph& placed) { note_placed(placed); };
  FunctionRef<void(const StepGraph&)> note_ref(note);
  DealtStep dealt = compile_step(*graph, request_of(fed, edges, targets, streams), options.passes,
                                 {*placement, kernels, here, client, fusions, chains}, scratch, {checked, &note_ref});
  step->needed_feeds = std::move(dealt.needed_feeds);
  step->uses_rendezvous = dealt.uses_rendezvous;
  add_parts(*step, std::move(dealt.partitions.parts), limits, checked);
  step->sends = std::move(dealt.partitions.sends);
  step->receives = std::move(dealt.partitions.receives);
  step->known = std::move(dealt.partitions.known);
  step->settle();
  return step;
}

void Session::State::note_placed(const StepGraph& step) {
  if (placement->devices().size() <= 1) return;
  auto placed = std::make_shared<StepGraph>();
  placed->nodes = step.nodes;
  placed->graph = step.graph;
  placed->made = step.made;
  placed->calls = step.calls;
  std::shared_ptr<const StepGraph> last = std::move(placed);  // the old value is destroyed without the lock
  const std::lock_guard lock(log_mutex);
  last_placed.swap(last);
}

/// The master makes the parts: here the step is names.
std::shared_ptr<CompiledStep> Session::State::make_remote_step(const FedEdges& fed, std::span<const AnyOutput> edges,
                                                               std::span<const Operation> targets, bool streams) {
  std::shared_ptr<CompiledStep> step = describe_step(fed, edges);
  RemoteSession::StepNames names;
  std::vector<NodeId> target_ids;
  for (std::size_t i = 0; i < fed.size(); ++i) names.feeds.push_back(fed[i].name());
  for (const AnyOutput& edge : edges) {
    names.fetches.push_back(edge.name());
    names.fetched_types.push_back(edge.dtype());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const NodeId id = targets[i].node_id();
    if (!id.is_valid() || id.position() >= graph->size()) {
      throw_error(Status::not_found(str_cat("target ", i, ": there is no node ", id.value())));
    }
    names.targets.push_back(graph->node(id).name);
    target_ids.push_back(id);
  }
  if (streams) {
    std::vector<Endpoint> feed_points, fetch_points;
    for (std::size_t i = 0; i < fed.size(); ++i) feed_points.push_back(fed[i].endpoint());
    for (const AnyOutput& edge : edges) fetch_points.push_back(edge.endpoint());
    step->streams = true;
    step->needed_feeds = needed_feeds(prune(*graph, feed_points, fetch_points, target_ids));
  }
  step->remote = remote_session->step(*graph, std::move(names));
  step->settle();
  return step;
}

// ---- running ----

std::shared_ptr<StepHandle> Session::State::make_handle(const CompiledStep& step, const StepLimits& limits,
                                                        bool trace) {
  StepHandle::Options handle;
  handle.id = new_step_id();
  handle.clock = options.clock;
  handle.deadline = limits.deadline;
  handle.stop = limits.stop;
  handle.trace = trace;
  handle.host_allocator = host_allocator;
  if (!step.shares.empty()) handle.rendezvous = remote->begin_step(handle.id);
  return std::make_shared<StepHandle>(std::move(handle));
}

Status Session::State::run_plain(CompiledStep& step, CompiledStep::Memory& memory, std::uint64_t id) {
  if (step.parts.empty()) return {};
  memory.steps[0]->set_id(id);
  return memory.steps[0]->run_sequential();
}

void Session::State::run(CompiledStep& step, const StepLimits& limits, const RunOptions& run_options,
                         RunMetadata* metadata, const FedTensors& fed, std::span<AnyTensor> results) {
  step.check_feeds(fed);
  const bool traces = run_options.trace && metadata != nullptr;
  const bool is_plain = step.is_plain() && !limits.any() && !traces;
  std::unique_ptr<CompiledStep::Memory> memory = step.take_memory();
  Status status;
  if (is_plain) {
    step.feed(*memory, fed, results);
    for (AnyTensor& tensor : fed.own()) tensor.reset();
    status = run_plain(step, *memory, new_step_id());
  } else {
    const std::shared_ptr<StepHandle> handle = make_handle(step, limits, traces);
    step.feed(*memory, fed, results);
    step.fill(*handle, *memory, fed, results);
    for (AnyTensor& tensor : fed.own()) tensor.reset();
    if (memory->queue != nullptr) status = handle->run(*memory->queue);
    if (!status.ok()) status = step.explain(std::move(status));
    if (traces) metadata->stats = handle->stats()->finish();
  }
  if (status.ok()) {
    try {
      step.collect(*memory, results);
    } catch (...) {
      status = status_of_current_exception();
    }
  }
  step.give_back(std::move(memory), !status.ok());
  note_end(status);
  throw_if_error(status);
}

/// The tensors, memory and end of a step that nobody waits for. The callback is called in any case, whichever thread
/// holds the run last. The objects that the run keeps alive are destroyed on the callback's thread.
struct Session::State::AsyncRun {
  AsyncRun() = default;
  AsyncRun(const AsyncRun&) = delete;
  AsyncRun& operator=(const AsyncRun&) = delete;
  ~AsyncRun() { call(); }

  std::shared_ptr<State> state;  ///< devices and clock live at least as long as the run
  std::shared_ptr<CompiledStep> step;
  std::unique_ptr<CompiledStep::Memory> memory;
  std::shared_ptr<StepHandle> handle;
  std::vector<AnyTensor> results;
  Reference<RunMetadata> metadata;  ///< empty unless the step is traced
  AnyDone done;
  Status outcome = Status::internal("the step was dropped");

  void finish(const Status& status) {
    outcome = status.ok() ? status : step->explain(status);
    if (outcome.ok()) {
      try {
        step->collect(*memory, results);
      } catch (...) {
        outcome = status_of_current_exception();
      }
    }
    if (!metadata.is_empty()) {
      StepStats stats = handle->stats()->finish();
      metadata.with([&](RunMetadata& of) { of.stats = std::move(stats); });
    }
    step->give_back(std::move(memory), !outcome.ok());
    state->note_end(outcome);
    handle = nullptr;
  }

  void call() noexcept {
    AnyDone callback = std::exchange(done, nullptr);
    if (!callback) return;
    if (!outcome.ok()) results.clear();
    try {
      callback(std::move(outcome), std::move(results));
    } catch (...) {
      state->report(status_of_current_exception());
    }
  }
};

void Session::State::run_async(const RunOptions& run_options, RunMetadata* metadata, std::span<const Feed> feed_list,
                               std::span<const AnyOutput> edges, std::span<const Operation> targets, AnyDone done) {
  std::vector<Feed> flat;
  try {
    feed_list = detail::flattened(feed_list, flat);
  } catch (...) {
    return refuse_async(status_of_current_exception(), std::move(done));
  }
  start_async(run_options, metadata, FedTensors(feed_list), edges.size(), std::move(done),
              [&](const StepLimits& limits) { return compile(FedEdges(feed_list), edges, targets, limits); });
}

void Session::State::run_async(std::shared_ptr<CompiledStep> step, const RunOptions& run_options, RunMetadata* metadata,
                               std::vector<AnyTensor> feeds, std::size_t num_results, AnyDone done) {
  start_async(run_options, metadata, std::span(feeds), num_results, std::move(done),
              [&](const StepLimits&) { return std::move(step); });
}

void Session::State::refuse_async(const Status& why, AnyDone done) {
  start_async({}, nullptr, std::span<AnyTensor>(), 0, std::move(done),
              [&](const StepLimits&) -> std::shared_ptr<CompiledStep> { throw_error(why); });
}

void Session::State::start_async(const RunOptions& run_options, RunMetadata* metadata, const FedTensors& fed,
                                 std::size_t num_results, AnyDone done,
                                 FunctionRef<std::shared_ptr<CompiledStep>(const StepLimits&)> step_of) {
  auto run = std::make_shared<AsyncRun>();
  run->state = shared_from_this();
  run->done = std::move(done);
  try {
    detail::begin_metadata(run_options, metadata);
    const StepLimits limits = limits_of(run_options);
    run->step = step_of(limits);
    run->step->check_feeds(fed);
    const bool traces = run_options.trace && metadata != nullptr;
    run->results.resize(num_results);
    run->memory = run->step->take_memory();
    run->handle = make_handle(*run->step, limits, traces);
    run->metadata = detail::reference_to(traces ? metadata : nullptr);
    run->step->feed(*run->memory, fed, run->results);
    run->step->fill(*run->handle, *run->memory, fed, run->results);
    for (AnyTensor& tensor : fed.own()) tensor.reset();
  } catch (...) {
    run->outcome = status_of_current_exception();
    return deliver(std::move(run));
  }
  const std::shared_ptr<StepHandle> handle = run->handle;
  run->outcome = Status::out_of_memory();  // if the step cannot even be started
  try {
    handle->start([run = std::move(run)](const Status& status) mutable {
      run->finish(status);
      deliver(std::move(run));
    });
  } catch (...) {  // before anything was started: the run was dropped, and the callback called with it
  }
}

/// This thread lets go of the run before the callback can end. Therefore nothing is destroyed here, except the
/// callback if no thread can be started for it.
void Session::State::deliver(std::shared_ptr<AsyncRun> run) noexcept {
  ThreadPool& callbacks = *run->state->options.callbacks;
  try {
    callbacks.schedule([run = std::move(run)] { run->call(); });
  } catch (...) {  // the task was dropped, and the callback called with it
  }
}

namespace detail {
inline void log_callback_error(const Status& thrown) {
  std::fprintf(stderr, "dflow: a callback of run_async has thrown: %s\n", thrown.to_string().c_str());
}
}  // namespace detail

void Session::State::report(const Status& thrown) noexcept {
  try {
    if (options.on_callback_error) return options.on_callback_error(thrown);
    detail::log_callback_error(thrown);
  } catch (...) {  // the error handler has thrown: there is nobody left to tell
  }
}

void detail::refuse(AnyDone done, Status error) noexcept {
  if (!done) return;
  try {
    done(std::move(error), {});
  } catch (...) {
    try {
      log_callback_error(status_of_current_exception());
    } catch (...) {  // no memory for the message
    }
  }
}

}  // namespace dflow
