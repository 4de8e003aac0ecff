#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/net/master/master.hpp>
#include <dflow/net/protocol/clock_offset.hpp>
#include <dflow/net/tasks/reset_devices.hpp>
#include <dflow/op/import.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/session/target.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <stop_token>

namespace dflow::net {

namespace detail {

/// The cluster as the master has found it for one session.
class FoundTarget final : public SessionTarget {
 public:
  FoundTarget(std::vector<std::shared_ptr<Device>> devices, std::string task, std::uint64_t incarnation,
              std::unique_ptr<ClusterTasks> found)
      : devices_(std::move(devices)), task_(std::move(task)), incarnation_(incarnation), found_(std::move(found)) {}

  std::vector<std::shared_ptr<Device>> local_devices() const override { return devices_; }
  std::string task() const override { return task_; }
  std::uint64_t incarnation() const noexcept override { return incarnation_; }
  std::unique_ptr<RemoteTasks> open(const OpTable&) override { return std::move(found_); }

 private:
  const std::vector<std::shared_ptr<Device>> devices_;
  const std::string task_;
  const std::uint64_t incarnation_;
  std::unique_ptr<ClusterTasks> found_;
};

/// Errors: InvalidArgument for a node that only partitioning puts into a graph.
void check_is_program(const GraphDef& def) {
  for (const NodeDef& node : def.nodes) {
    if (node.op != Send::name && node.op != Recv::name) continue;
    throw_error(invalid_argument(str_cat("'", node.name, "' is a ", node.op,
                                         ": what is sent between devices is the master's to say, not the client's"))
                    .with_node(node.op, node.name));
  }
}

}  // namespace detail

/// How a step is told to end.
struct Master::Ending {
  std::stop_source stop;
  std::mutex mutex;  ///< guards the one that follows
  Status why;        ///< it is to stop

  void end(const Status& reason) {
    {
      const std::lock_guard lock(mutex);
      if (why.ok()) why = reason;
    }
    stop.request_stop();
  }
  /// The step's status, or why it was stopped.
  Status explain(const Status& status) {
    const std::lock_guard lock(mutex);
    return status.code() == Code::cancelled && !why.ok() ? why : status;
  }
};

namespace detail {

/// What was traced, in a reply whose time of answer is set.
void add_trace(RunShareReply& reply, StepStats stats, Clock& clock) {
  // Where the step began, by the steady clock.
  const auto since_1970 = clock.wall_now().time_since_epoch();
  const Duration ago = since_1970 - std::chrono::microseconds(stats.wall_start_us);
  reply.is_traced = true;
  reply.began_ns = wrapped_difference(reply.answered_ns, ago.count());
  reply.stats = std::move(stats);
}

}  // namespace detail

/// One step of a session.
struct Master::Run {
  std::shared_ptr<Kept> session;
  std::string task;  ///< the master's
  std::shared_ptr<Clock> clock;
  Clock::time_point came;
  RunSession request;
  std::vector<std::byte> payload;
  Responder respond;
  RunMetadata metadata;
  Ending ending;
  CancellationToken cancellation;
  CancellationRegistration registration;

  void finish(Status status, std::vector<AnyTensor> fetched);
};

/// A partial run of a session. It counts before it has begun.
struct Master::Partial {
  std::uint64_t number = 0;
  bool is_traced = false;
  RunMetadata metadata;
  Ending ending;
  std::optional<PartialRun> run;
  bool has_begun = false;  ///< guarded by its session's mutex
};

/// What a client wants of a partial run.
struct Master::Request {
  std::shared_ptr<Kept> session;
  std::shared_ptr<Partial> partial;
  std::string task;  ///< the master's
  std::shared_ptr<Clock> clock;
  Clock::time_point came;
  ContinuePartialRun wanted;
  std::vector<std::byte> payload;
  Responder respond;
  CancellationToken cancellation;
  CancellationRegistration registration;

  void start(std::shared_ptr<Request> self);
  void finish(const Status& status, std::vector<AnyTensor> fetched);
};

/// A session of a client's. It counts before it has been made.
class Master::Kept {
 public:
  explicit Kept(std::uint64_t number) : number_(number) {}

  std::uint64_t number() const noexcept { return number_; }

  /// Once, before anything else. Errors: InvalidArgument for a graph that sends or receives; those of `import_graph`
  /// and `Session`; why it was ended.
  void make(const GraphDef& def, SessionOptions options) {
    detail::check_is_program(def);
    graph_ = import_graph(def, options.ops.ops());
    auto made = std::make_unique<Session>(graph_, std::move(options));
    const std::lock_guard lock(mutex_);
    throw_if_error(ended_);
    session_ = std::move(made);
  }

  /// Errors: Aborted if it has another version, or somebody is extending it; InvalidArgument for a graph that sends or
  /// receives; those of `import_graph_into`. It has the next version afterwards, or is as it was.
  void extend(const GraphDef& def, std::uint64_t expected, const OpTable& ops) {
    detail::check_is_program(def);
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      if (expected != version_ || is_extending_) {
        throw_error(aborted(str_cat("the session's graph was to be of version ", expected, ", and ",
                                    is_extending_ ? "is being extended from version " : "is of version ", version_)));
      }
      is_extending_ = true;
    }
    Status status;
    try {
      static_cast<void>(import_graph_into(graph_, def, ops, {.goes_on = true}));
    } catch (...) {
      status = status_of_current_exception();
    }
    const std::lock_guard lock(mutex_);
    is_extending_ = false;
    throw_if_error(status);
    ++version_;
  }

  /// Errors: NotFound; what is wrong with a feed; why it was ended.
  void start(const std::shared_ptr<Run>& run) {
    Session* session = nullptr;
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      session = session_.get();
    }
    std::vector<Feed> feeds;
    for (auto& [edge, value] : take_feeds(run->request.feeds, run->payload)) feeds.emplace_back(edge, value);
    const std::vector<AnyOutput> fetches = edges(run->request.fetches);
    const std::vector<Operation> targets = operations(run->request.targets);
    const RunOptions options = options_of(run->request, run->ending);
    {
      const std::lock_guard lock(mutex_);
      throw_if_error(ended_);
      runs_.emplace(run.get(), run);
    }
    session->run_async_erased(
        options, options.trace ? &run->metadata : nullptr, feeds, fetches, targets,
        [run](Status status, std::vector<AnyTensor> fetched) { run->finish(std::move(status), std::move(fetched)); });
  }
  void forget(Run* run) {
    const std::lock_guard lock(mutex_);
    runs_.erase(run);
  }

  /// Errors: NotFound; ResourceExhausted; those of `Session::partial_run`; why it was ended.
  std::uint64_t begin(const BeginPartialRun& request, std::size_t max_partial_runs) {
    const auto partial = std::make_shared<Partial>();
    Session* session = nullptr;
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      if (partials_.size() >= max_partial_runs) {
        throw_error(resource_exhausted(str_cat("more than ", max_partial_runs, " partial runs of one session")));
      }
      session = session_.get();
      partial->number = next_partial_++;
      partial->is_traced = request.trace;
      partials_.emplace(partial->number, partial);
    }
    try {
      partial->run.emplace(session->partial_run_erased(
          options_of(request, partial->ending), request.trace ? &partial->metadata : nullptr, edges(request.feeds),
          edges(request.fetches), operations(request.targets)));
    } catch (...) {
      const Status status = partial->ending.explain(status_of_current_exception());
      end_partial(partial->number, status);
      throw_error(status);
    }
    const std::lock_guard lock(mutex_);
    partial->has_begun = true;
    return partial->number;
  }
  /// Errors: NotFound; why the session was ended.
  std::shared_ptr<Partial> partial(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    check_is_made();
    const auto found = partials_.find(number);
    if (found != partials_.end() && found->second->has_begun) return found->second;
    throw_error(not_found(str_cat("session ", number_, " has no partial run ", number)));
  }
  /// Ends it if it is there. Returns what is left of it, else null.
  std::shared_ptr<Partial> end_partial(std::uint64_t number, const Status& why) {
    std::shared_ptr<Partial> taken;
    {
      const std::lock_guard lock(mutex_);
      const auto found = partials_.find(number);
      if (found == partials_.end()) return nullptr;
      taken = std::move(found->second);
      partials_.erase(found);
    }
    taken->ending.end(why);
    return taken;
  }

  /// Ends its steps and partial runs; none begins any more.
  void end(const Status& why) {
    std::vector<std::shared_ptr<Run>> runs;
    std::vector<std::shared_ptr<Partial>> partials;
    {
      const std::lock_guard lock(mutex_);
      if (ended_.ok()) ended_ = why;
      for (const auto& [key, weak] : runs_) {
        if (std::shared_ptr<Run> run = weak.lock()) runs.push_back(std::move(run));
      }
      for (const auto& [number, partial] : partials_) partials.push_back(partial);
    }
    for (const std::shared_ptr<Run>& run : runs) run->ending.end(why);
    for (const std::shared_ptr<Partial>& partial : partials) partial->ending.end(why);
  }

  /// Errors: NotFound for an edge that there is not; DataLoss for another number of bytes than the feeds have.
  std::vector<std::pair<AnyOutput, AnyTensor>> take_feeds(
      const std::vector<std::pair<std::string, PayloadTensor>>& feeds, std::vector<std::byte>& payload) const {
    std::vector<std::pair<AnyOutput, AnyTensor>> taken;
    std::span<const std::byte> elements(payload);
    for (const auto& [edge, tensor] : feeds) {
      AnyTensor value = take_from_payload(tensor, elements);
      taken.emplace_back(graph_.output(edge), std::move(value));
    }
    if (!elements.empty()) throw_error(data_loss("a step with more bytes than its feeds have"));
    payload = {};
    return taken;
  }
  /// Errors: NotFound.
  std::vector<AnyOutput> edges(const std::vector<std::string>& names) const {
    std::vector<AnyOutput> found;
    found.reserve(names.size());
    for (const std::string& name : names) found.push_back(graph_.output(name));
    return found;
  }

  std::uint64_t graph_bytes = 0;  ///< guarded by the master's mutex

 private:
  /// Errors: NotFound.
  std::vector<Operation> operations(const std::vector<std::string>& names) const {
    std::vector<Operation> found;
    for (const std::string& name : names) {
      found.push_back(graph_.find(name));
      if (!found.back().is_valid()) throw_error(not_found(str_cat("there is no node '", name, "'")));
    }
    return found;
  }
  template <class Message>
  static RunOptions options_of(const Message& message, const Ending& ending) {
    RunOptions options;
    if (message.time_left_ns > 0) options.deadline = std::chrono::nanoseconds(message.time_left_ns);
    options.trace = message.trace;
    options.stop = ending.stop.get_token();
    return options;
  }
  void check_is_made() const {
    throw_if_error(ended_);
    if (session_ == nullptr) throw_error(not_found(str_cat("there is no session ", number_)));
  }

  const std::uint64_t number_;
  Graph graph_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::unique_ptr<Session> session_;
  std::uint64_t version_ = 0;
  bool is_extending_ = false;
  Status ended_;
  std::unordered_map<Run*, std::weak_ptr<Run>> runs_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Partial>> partials_;
  std::uint64_t next_partial_ = 1;
};

void Master::Run::finish(Status status, std::vector<AnyTensor> fetched) {
  session->forget(this);
  registration.try_deregister();
  try {
    throw_if_error(ending.explain(status));
    auto [described, elements] = to_payload(std::move(fetched));
    RunSessionReply reply;
    reply.fetches = std::move(described);
    reply.run.came_ns = detail::clock_ns(came);
    reply.run.answered_ns = detail::clock_ns(clock->now());
    if (request.trace) detail::add_trace(reply.run, std::move(metadata.stats), *clock);
    respond(Outgoing{to_body(reply), std::move(elements)});
  } catch (...) {
    respond(status_of_current_exception().with_task(task));
  }
}

/// In the pool.
void Master::Request::start(std::shared_ptr<Request> self) {
  try {
    registration = cancellation.on_cancel([weak = std::weak_ptr<Partial>(partial)](const Status& why) {
      if (const std::shared_ptr<Partial> cancelled = weak.lock()) cancelled->ending.end(why);
    });
    const std::vector<AnyOutput> fetches = session->edges(wanted.fetches);
    std::vector<std::pair<AnyOutput, AnyTensor>> feeds = session->take_feeds(wanted.feeds, payload);
    if (fetches.empty() && !wanted.until_end) {
      partial->run->feed_erased(std::move(feeds));
      return finish({}, {});
    }
    partial->run->fetch_async_erased(std::move(feeds), fetches, wanted.until_end,
                                     [self = std::move(self)](const Status& status, std::vector<AnyTensor> fetched) {
                                       self->finish(status, std::move(fetched));
                                     });
  } catch (...) {
    finish(status_of_current_exception(), {});
  }
}

void Master::Request::finish(const Status& status, std::vector<AnyTensor> fetched) {
  registration.try_deregister();
  try {
    throw_if_error(partial->ending.explain(status));
    auto [described, elements] = to_payload(std::move(fetched));
    RunSessionReply reply;
    reply.fetches = std::move(described);
    reply.run.came_ns = detail::clock_ns(came);
    reply.run.answered_ns = detail::clock_ns(clock->now());
    if (wanted.until_end && partial->is_traced) detail::add_trace(reply.run, partial->metadata.stats, *clock);
    respond(Outgoing{to_body(reply), std::move(elements)});
  } catch (...) {
    respond(status_of_current_exception().with_task(task));
  }
}

Master::Master(Options options) : options_(std::move(options)) {}
Master::~Master() = default;

bool Master::handle(const Visit& visit, Incoming& request, Responder& respond) {
  switch (static_cast<Method>(request.method)) {
    case Method::create_session:
      create_session(visit, request, respond);
      return true;
    case Method::extend_session:
      extend_session(visit.id(), request, respond);
      return true;
    case Method::run_session:
      run_session(visit.id(), request, respond);
      return true;
    case Method::end_session:
      end_session(visit.id(), from_body<ShareName>(request.body).session);
      respond(Outgoing());
      return true;
    case Method::begin_partial_run:
      begin_partial_run(visit.id(), request, respond);
      return true;
    case Method::continue_partial_run:
      continue_partial_run(visit.id(), request, respond);
      return true;
    case Method::end_partial_run:
      end_partial_run(visit.id(), from_body<PartialRunName>(request.body));
      respond(Outgoing());
      return true;
    case Method::list_cluster_devices:
      list_devices(from_body<NameList>(request.body), respond);
      return true;
    case Method::reset_cluster:
      reset_cluster(from_body<ResetCluster>(request.body), respond);
      return true;
    case Method::reset_task:
      reset_devices(options_.devices, from_body<NameList>(request.body).names);
      respond(Outgoing());
      return true;
    default:
      return false;
  }
}

// ---- sessions ----

std::vector<std::string> Master::others_that_match(const std::vector<std::string>& filters) const {
  std::vector<std::string> tasks = options_.other_tasks;
  tasks.push_back(options_.task);
  const detail::TaskFilters wanted(filters);
  wanted.check(tasks);
  tasks.pop_back();
  std::erase_if(tasks, [&](const std::string& task) { return !wanted.want(task); });
  return tasks;
}

ClusterTasks::Options Master::cluster_options() const {
  return {options_.task, options_.next_session(), options_.peers, options_.steps, options_.clock, options_.pool};
}

std::shared_ptr<Master::Kept> Master::find(const Visit::Id& visit, std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  throw_if_error(stopped_);
  if (std::shared_ptr<Kept> found = sessions_.find(visit, session)) return found;
  throw_error(not_found(str_cat("there is no session ", session)));
}

std::shared_ptr<Master::Kept> Master::take(const Visit::Id& visit, std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  return sessions_.take(visit, session);
}

void Master::reserve(const Visit::Id& visit, Kept& session, std::uint64_t bytes) {
  std::uint64_t all = bytes;
  if (const auto of_visit = sessions_.by_visit().find(visit); of_visit != sessions_.by_visit().end()) {
    for (const auto& [number, other] : of_visit->second) all += other->graph_bytes;
  }
  if (all > options_.max_graph_bytes) {
    throw_error(resource_exhausted(str_cat("more than ", options_.max_graph_bytes, " bytes of one client's graphs")));
  }
  session.graph_bytes += bytes;
}

void Master::create_session(const Visit& visit, Incoming& request, Responder& respond) {
  const CreateSession create = from_body<CreateSession>(request.body);
  const std::vector<std::string> others = others_that_match(create.filters);
  std::shared_ptr<Kept> kept;
  {
    const std::lock_guard lock(mutex_);
    throw_if_error(stopped_);
    if (visit.is_over()) throw_error(unavailable("the connection has ended"));
    kept = std::make_shared<Kept>(next_session_++);
    reserve(visit.id(), *kept, request.payload.size());
    sessions_.add(visit.id(), kept->number(), kept, options_.max_sessions);
  }
  Duration timeout = options_.startup_timeout;
  if (create.time_left_ns > 0) timeout = std::min(timeout, Duration(std::chrono::nanoseconds(create.time_left_ns)));
  auto finish = [self = shared_from_this(), id = visit.id(), kept, respond = std::move(respond),
                 cancellation = request.cancellation](Status status) mutable {
    if (status.ok() && cancellation.is_cancelled()) status = cancellation.status();
    if (status.ok()) return respond(Outgoing{to_body(SessionVersion{kept->number(), 0}), {}});
    self->take(id, kept->number());
    respond(status.with_task(self->options_.task));
  };
  ClusterTasks::find_async(
      cluster_options(), others, timeout,
      [self = shared_from_this(), kept, create, payload = std::move(request.payload), finish = std::move(finish)](
          Status status, std::unique_ptr<ClusterTasks> found) mutable {
        if (!status.ok()) return finish(std::move(status));
        self->options_.pool->schedule([self, kept, create, payload = std::move(payload), found = std::move(found),
                                       finish = std::move(finish)]() mutable {
          try {
            const Options& o = self->options_;
            SessionOptions options;
            options.ops = o.ops;
            options.target = std::make_shared<detail::FoundTarget>(o.devices, o.task, o.incarnation, std::move(found));
            options.passes = create.passes;
            options.soft_placement = create.soft_placement;
            options.clock = o.clock;
            options.callbacks = o.pool;
            options.incarnation = o.random();
            kept->make(from_binary(payload), std::move(options));
            finish({});
          } catch (...) {
            finish(status_of_current_exception());
          }
        });
      });
}

void Master::extend_session(const Visit::Id& visit, Incoming& request, Responder& respond) {
  const SessionVersion expected = from_body<SessionVersion>(request.body);
  const std::shared_ptr<Kept> kept = find(visit, expected.session);
  const std::uint64_t bytes = request.payload.size();
  {
    const std::lock_guard lock(mutex_);
    reserve(visit, *kept, bytes);
  }
  options_.pool->schedule([self = shared_from_this(), kept, expected, bytes, payload = std::move(request.payload),
                           respond = std::move(respond)]() mutable {
    try {
      // Made before, so that no client is told of an error whose session has been extended.
      Outgoing reply{to_body(SessionVersion{expected.session, expected.version + 1}), {}};
      kept->extend(from_binary(payload), expected.version, self->options_.ops.ops());
      respond(std::move(reply));
    } catch (...) {
      {
        const std::lock_guard lock(self->mutex_);
        kept->graph_bytes -= bytes;
      }
      respond(status_of_current_exception().with_task(self->options_.task));
    }
  });
}

void Master::run_session(const Visit::Id& visit, Incoming& request, Responder& respond) {
  auto run = std::make_shared<Run>();
  run->clock = options_.clock;
  run->came = options_.clock->now();
  run->request = from_body<RunSession>(request.body);
  run->session = find(visit, run->request.session);
  run->task = options_.task;
  run->payload = std::move(request.payload);
  run->respond = std::move(respond);
  run->cancellation = request.cancellation;
  options_.pool->schedule([run = std::move(run)] {
    try {
      run->registration = run->cancellation.on_cancel([weak = std::weak_ptr<Run>(run)](const Status& why) {
        if (const std::shared_ptr<Run> cancelled = weak.lock()) cancelled->ending.end(why);
      });
      run->session->start(run);
    } catch (...) {
      run->finish(status_of_current_exception(), {});
    }
  });
}

void Master::end_session(const Visit::Id& visit, std::uint64_t session) {
  std::vector<std::shared_ptr<Kept>> ended;
  if (std::shared_ptr<Kept> found = take(visit, session)) ended.push_back(std::move(found));
  drop(std::move(ended), cancelled("the session was closed"));
}

void Master::begin_partial_run(const Visit::Id& visit, Incoming& request, Responder& respond) {
  BeginPartialRun begin = from_body<BeginPartialRun>(request.body);
  const std::shared_ptr<Kept> kept = find(visit, begin.session);
  options_.pool->schedule([self = shared_from_this(), kept, begin = std::move(begin), respond = std::move(respond),
                           cancellation = request.cancellation]() mutable {
    try {
      const std::uint64_t number = kept->begin(begin, self->options_.max_partial_runs);
      if (!cancellation.is_cancelled()) return respond(Outgoing{to_body(PartialRunName{begin.session, number}), {}});
      kept->end_partial(number, cancellation.status());
      respond(cancellation.status());
    } catch (...) {
      respond(status_of_current_exception().with_task(self->options_.task));
    }
  });
}

void Master::continue_partial_run(const Visit::Id& visit, Incoming& request, Responder& respond) {
  auto next = std::make_shared<Request>();
  next->clock = options_.clock;
  next->came = options_.clock->now();
  next->wanted = from_body<ContinuePartialRun>(request.body);
  next->session = find(visit, next->wanted.name.session);
  next->partial = next->session->partial(next->wanted.name.run);
  next->task = options_.task;
  next->payload = std::move(request.payload);
  next->respond = std::move(respond);
  next->cancellation = request.cancellation;
  options_.pool->schedule([next = std::move(next)] { next->start(next); });
}

void Master::end_partial_run(const Visit::Id& visit, const PartialRunName& name) {
  std::shared_ptr<Kept> kept;
  {
    const std::lock_guard lock(mutex_);
    kept = sessions_.find(visit, name.session);
  }
  if (kept == nullptr) return;
  std::shared_ptr<Partial> ended = kept->end_partial(name.run, cancelled("the partial run was ended"));
  if (ended == nullptr) return;
  options_.pool->schedule([ended = std::move(ended)]() mutable { ended.reset(); });
}

void Master::forget(const Visit& visit, const Status& why) {
  std::vector<std::shared_ptr<Kept>> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = sessions_.take_all(visit.id());
  }
  drop(std::move(ended), why);
}

void Master::stop(const Status& why) {
  std::vector<std::shared_ptr<Kept>> ended;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_.ok()) return;
    stopped_ = why;
    ended = sessions_.take_all();
  }
  drop(std::move(ended), why);
}

void Master::drop(std::vector<std::shared_ptr<Kept>> sessions, const Status& why) {
  if (sessions.empty()) return;
  for (const std::shared_ptr<Kept>& kept : sessions) kept->end(why);
  options_.pool->schedule([sessions = std::move(sessions)]() mutable { sessions.clear(); });
}

std::size_t Master::num_sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

// ---- the cluster ----

void Master::list_devices(const NameList& filters, Responder& respond) {
  const std::vector<std::string> others = others_that_match(filters.names);
  ClusterTasks::find_async(cluster_options(), others, options_.startup_timeout,
                           [self = shared_from_this(), respond = std::move(respond)](
                               Status status, const std::unique_ptr<ClusterTasks>& found) mutable {
                             if (!status.ok()) return respond(status.with_task(self->options_.task));
                             DeviceList list;
                             for (const std::shared_ptr<Device>& device : self->options_.devices)
                               list.devices.push_back(device->info());
                             list.devices.insert(list.devices.end(), found->devices().begin(), found->devices().end());
                             respond(Outgoing{to_body(list), {}});
                           });
}

void Master::reset_cluster(ResetCluster reset, Responder& respond) {
  const std::vector<std::string> others = others_that_match(reset.filters.names);
  if (detail::TaskFilters(reset.filters.names).want(options_.task))
    reset_devices(options_.devices, reset.containers.names);
  reset_tasks_async(*options_.peers, others, std::move(reset.containers.names),
                    options_.clock->after(options_.startup_timeout),
                    [respond = std::move(respond), task = options_.task](Status status) mutable {
                      if (!status.ok()) return respond(status.with_task(task));
                      respond(Outgoing());
                    });
}

}  // namespace dflow::net
