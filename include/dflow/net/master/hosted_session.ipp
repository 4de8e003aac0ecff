#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/net/master/master.hpp>
#include <dflow/net/protocol/byte_budget.hpp>
#include <dflow/net/protocol/clock_offset.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/op/import.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/session/session.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

/// Errors: InvalidArgument for a node that only partitioning puts into a graph.
void check_is_program(const GraphDef& def) {
  for (const NodeDef& node : def.nodes) {
    if (node.op != Send::name && node.op != Recv::name) continue;
    throw_error(
        Status::invalid_argument(str_cat("'", node.name, "' is a ", node.op,
                                         ": what is sent between devices is the master's to say, not the client's"))
            .with_node(node.op, node.name));
  }
}

/// Adds the trace to a reply whose time of answer is set.
void add_trace(RunShareReply& reply, StepStats stats, Clock& clock) {
  // The begin of the step, by the steady clock.
  const auto since_1970 = clock.wall_now().time_since_epoch();
  const Duration ago = since_1970 - std::chrono::microseconds(stats.wall_start_us);
  reply.is_traced = true;
  reply.began_ns = wrapped_difference(reply.answered_ns, ago.count());
  reply.stats = std::move(stats);
}

}  // namespace detail

/// How a step is told to end.
struct Master::Ending {
  std::stop_source stop;
  std::mutex mutex;  ///< guards the next member
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

/// One step of a session.
struct Master::Run {
  std::shared_ptr<HostedSession> session;
  std::string task;  ///< the master's
  std::shared_ptr<Clock> clock;
  Clock::time_point came;
  RunSession request;
  std::vector<std::byte> payload;
  ByteCharge charge;  ///< of the strings among the feeds
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
  Clock::time_point came;
  bool is_traced = false;
  RunMetadata metadata;
  Ending ending;
  std::optional<PartialRun> run;
  bool has_begun = false;  ///< guarded by its session's mutex
};

/// A client's request for a partial run.
struct Master::Request {
  std::shared_ptr<HostedSession> session;
  std::shared_ptr<Partial> partial;
  std::string task;  ///< the master's
  std::shared_ptr<Clock> clock;
  Clock::time_point came;
  ContinuePartialRun wanted;
  std::vector<std::byte> payload;
  ByteCharge charge;  ///< of the strings among the feeds
  Responder respond;
  CancellationToken cancellation;
  CancellationRegistration registration;

  void start(std::shared_ptr<Request> self);
  void finish(const Status& status, std::vector<AnyTensor> fetched);
};

/// A session of a client's. It counts before it has been made.
class Master::HostedSession {
 public:
  explicit HostedSession(std::uint64_t number) : number_(number) {}

  std::uint64_t number() const noexcept { return number_; }

  /// Once, before anything else. Errors: InvalidArgument for a graph that sends or receives; the errors of
  /// `import_graph` and `Session`; the reason why the session was ended.
  void make(const GraphDef& def, SessionOptions options) {
    detail::check_is_program(def);
    graph_ = import_graph(def, options.ops.ops());
    auto made = std::make_unique<Session>(graph_, std::move(options));
    const std::lock_guard lock(mutex_);
    throw_if_error(ended_);
    session_ = std::move(made);
  }

  /// Errors: Aborted if it has another version, or somebody is extending it; InvalidArgument for a graph that sends
  /// or receives; the errors of `import_graph_into`. It has the next version afterwards, or is as it was.
  void extend(const GraphDef& def, std::uint64_t expected, const OpTable& ops) {
    detail::check_is_program(def);
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      if (expected != version_ || is_extending_) {
        throw_error(
            Status::aborted(str_cat("the session's graph was to be of version ", expected, ", and ",
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

  /// Errors: NotFound; the error of a wrong feed; the reason why the session was ended.
  void start(const std::shared_ptr<Run>& run) {
    Session* session = nullptr;
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      session = session_.get();
    }
    std::vector<Feed> feeds;
    for (auto& [edge, value] : take_feeds(run->request.feeds, run->payload, run->charge))
      feeds.emplace_back(edge, value);
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

  /// Errors: NotFound; ResourceExhausted; the errors of `Session::partial_run`; the reason why the session was ended.
  std::uint64_t begin(const BeginPartialRun& request, std::size_t max_partial_runs, Clock::time_point now) {
    const auto partial = std::make_shared<Partial>();
    Session* session = nullptr;
    {
      const std::lock_guard lock(mutex_);
      check_is_made();
      if (partials_.size() >= max_partial_runs) {
        throw_error(
            Status::resource_exhausted(str_cat("more than ", max_partial_runs, " partial runs of one session")));
      }
      session = session_.get();
      partial->number = next_partial_++;
      partial->came = now;
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
    throw_error(Status::not_found(str_cat("session ", number_, " has no partial run ", number)));
  }
  /// Ends it if it is there. Returns the ended partial run, else null.
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

  /// When each of its steps and partial runs came.
  std::vector<Clock::time_point> under_way() const {
    std::vector<std::shared_ptr<Run>> runs;  // destroyed without the mutex
    std::vector<Clock::time_point> came;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : runs_) {
      if (std::shared_ptr<Run> run = weak.lock()) came.push_back(runs.emplace_back(std::move(run))->came);
    }
    for (const auto& [number, partial] : partials_) came.push_back(partial->came);
    return came;
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

  /// Large feeds stay in the payload's memory. Strings are charged before they are made: they take far more memory than
  /// their bytes in the payload. Errors: NotFound for an edge that does not exist; DataLoss for another number of bytes
  /// than the feeds have; ResourceExhausted.
  std::vector<std::pair<AnyOutput, AnyTensor>> take_feeds(
      const std::vector<std::pair<std::string, PayloadTensor>>& feeds, std::vector<std::byte>& payload,
      ByteCharge& charge) const {
    std::vector<std::pair<AnyOutput, AnyTensor>> taken;
    const auto owner = std::make_shared<std::vector<std::byte>>(std::move(payload));
    std::span<const std::byte> elements(*owner);
    for (const auto& [edge, tensor] : feeds) {
      if (tensor.head.dtype == DType::string && tensor.bytes <= elements.size()) {  // each takes a byte at least
        throw_if_error(charge.add(static_cast<std::uint64_t>(tensor.head.shape.num_elements()) * sizeof(std::string)));
      }
      AnyTensor value = take_from_payload(tensor, elements, owner);
      taken.emplace_back(graph_.output(edge), std::move(value));
    }
    if (!elements.empty()) throw_error(Status::data_loss("a step with more bytes than its feeds have"));
    return taken;
  }
  /// Errors: NotFound.
  std::vector<AnyOutput> edges(const std::vector<std::string>& names) const {
    std::vector<AnyOutput> found;
    found.reserve(names.size());
    for (const std::string& name : names) found.push_back(graph_.output(name));
    return found;
  }

  // Guarded by the master's mutex.
  std::uint64_t graph_bytes = 0;
  std::vector<ByteCharge> charges;  ///< of its graphs

 private:
  /// Errors: NotFound.
  std::vector<Operation> operations(const std::vector<std::string>& names) const {
    std::vector<Operation> found;
    for (const std::string& name : names) {
      found.push_back(graph_.find(name));
      if (!found.back().is_valid()) throw_error(Status::not_found(str_cat("there is no node '", name, "'")));
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
    if (session_ == nullptr) throw_error(Status::not_found(str_cat("there is no session ", number_)));
  }

  const std::uint64_t number_;
  Graph graph_;
  mutable std::mutex mutex_;  ///< guards the members below
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
    std::vector<std::pair<AnyOutput, AnyTensor>> feeds = session->take_feeds(wanted.feeds, payload, charge);
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

}  // namespace dflow::net
