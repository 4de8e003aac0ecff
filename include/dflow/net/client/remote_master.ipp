#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/client/remote_partial_run_client.ipp>
#include <dflow/net/client/remote_session_client.ipp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/tasks/reset_devices.hpp>
#include <dflow/session/options.hpp>

#include <algorithm>
#include <utility>

namespace dflow::net {

namespace detail {

/// One run of a step at the master.
class RunAtMaster final : public StepPart, public std::enable_shared_from_this<RunAtMaster> {
 public:
  /// Borrowed memory is its lender's when the step has ended, and may still be on its way then.
  RunAtMaster(std::shared_ptr<const StepAtMaster> step, std::vector<AnyTensor> feeds, std::span<AnyTensor> results)
      : step_(std::move(step)), feeds_(std::move(feeds)), results_(results) {
    for (AnyTensor& feed : feeds_) {
      if (feed.is_borrowed()) feed = feed.deep_copy();
    }
  }

  void start(StepHandle& step, Done done) override {
    std::unique_lock lock(mutex_);
    if (!cancelled_.ok()) {
      lock.unlock();
      return done(cancelled_);
    }
    deadline_ = step.deadline();
    stats_ = step.stats();
    done_ = std::move(done);
    lock.unlock();
    step_->session->prepare(step_->num_nodes, {},
                            [self = shared_from_this()](Status status, const std::shared_ptr<Connection>& connection) {
                              if (!status.ok()) return self->finish(std::move(status), {});
                              try {
                                self->send(*connection);
                              } catch (...) {
                                self->finish(status_of_current_exception(), {});
                              }
                            });
  }

  void cancel(const Status& status) override {
    Done done;
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_.ok()) return;
      cancelled_ = status.ok() ? cancelled("the step was cancelled") : status;
      done = std::exchange(done_, nullptr);
    }
    cancellation_.cancel(status);
    if (done) done(cancelled_);
  }

 private:
  void send(Connection& connection) {
    RunSession run;
    Call call;
    try {
      const RemoteSession::StepNames& names = step_->names;
      run.session = step_->session->number();
      auto [described, elements] = to_payload(feeds_);
      for (std::size_t i = 0; i < described.size(); ++i) run.feeds.emplace_back(names.feeds[i], described[i]);
      run.fetches = names.fetches;
      run.targets = names.targets;
      {
        const std::lock_guard lock(mutex_);
        if (!done_) return;
        run.trace = stats_ != nullptr;
      }
      run.time_left_ns = time_left_ns(deadline_, step_->session->clock());
      call = make_call(Method::run_session, to_body(run));
      call.message.payload = std::move(elements);
    } catch (...) {
      return finish(status_of_current_exception(), {});
    }
    call.cancellation = cancellation_.token();
    call.place_payload = [self = shared_from_this()](std::string_view body, std::uint64_t size) {
      return self->fetched_.place(body, size);
    };
    const std::int64_t asked = clock_ns(step_->session->clock().now());
    connection.call(std::move(call),
                    [self = shared_from_this(), asked, number = run.session](Status status, const std::string& body) {
                      const bool is_unknown = status.code() == Code::not_found && status.node().empty();
                      if (is_unknown) self->step_->session->make_again(number);
                      self->finish(status.with_task(self->step_->session->master()), body, asked);
                    });
  }

  void finish(Status status, const std::string& body, std::int64_t asked = 0) {
    Done done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(done_, nullptr);
    }
    if (!done) return;  // cancelled; the step and its results may be gone
    try {
      throw_if_error(status);
      const RunSessionReply reply = from_body<RunSessionReply>(body);
      std::vector<AnyTensor> tensors = fetched_.take(reply, step_->names.fetches, step_->names.fetched_types);
      const std::int64_t now = clock_ns(step_->session->clock().now());
      if (stats_ != nullptr) add_stats(*stats_, reply.run, ClockOffset(), asked, now, now);
      std::move(tensors.begin(), tensors.end(), results_.begin());
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  }

  const std::shared_ptr<const StepAtMaster> step_;
  std::vector<AnyTensor> feeds_;
  const std::span<AnyTensor> results_;
  Clock::time_point deadline_ = Clock::never;
  StatsCollector* stats_ = nullptr;
  CancellationSource cancellation_;
  FetchedTensors fetched_;
  std::mutex mutex_;  ///< guards what follows
  Done done_;
  Status cancelled_;
};

class StepOfMaster final : public RemoteStep {
 public:
  explicit StepOfMaster(std::shared_ptr<const StepAtMaster> step) : step_(std::move(step)) {}

  std::shared_ptr<StepPart> make_part(std::vector<AnyTensor> feeds, std::span<AnyTensor> results) override {
    return std::make_shared<RunAtMaster>(step_, std::move(feeds), results);
  }
  std::shared_ptr<RemotePartialRun> make_partial_run(std::vector<std::vector<bool>> needed_feeds,
                                                     RemotePartialRun::Events events) override {
    return std::make_shared<PartialRunAtMaster>(step_, std::move(needed_feeds), std::move(events));
  }
  Status explain(const Status& status) const override { return step_->session->explain(status); }

 private:
  const std::shared_ptr<const StepAtMaster> step_;
};

class SessionOfMaster final : public RemoteSession {
 public:
  explicit SessionOfMaster(std::shared_ptr<SessionAtMaster> session) : session_(std::move(session)) {}

  std::shared_ptr<RemoteStep> step(const GraphStore& graph, StepNames names) override {
    auto step = std::make_shared<StepAtMaster>();
    step->session = session_;
    step->num_nodes = session_->describe(graph);
    step->names = std::move(names);
    return std::make_shared<StepOfMaster>(std::move(step));
  }

 private:
  const std::shared_ptr<SessionAtMaster> session_;
};

std::vector<std::string> names_of(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const ClusterSpec::Task& task : cluster.tasks()) names.push_back(task.name);
  return names;
}

}  // namespace detail

RemoteMaster::RemoteMaster(std::shared_ptr<State> state) : state_(std::move(state)) {}

RemoteMaster::~RemoteMaster() { state_->client.peers->close(unavailable("the client has ended")); }

std::vector<DeviceInfo> RemoteMaster::devices() const {
  return from_body<DeviceList>(state_->call(Method::list_cluster_devices, to_body(NameList{state_->filters}))).devices;
}

void RemoteMaster::reset(std::vector<std::string> containers) const {
  state_->call(Method::reset_cluster, to_body(ResetCluster{{std::move(containers)}, {state_->filters}}));
}

std::string RemoteMaster::task() const { return state_->client.task; }
std::uint64_t RemoteMaster::incarnation() const noexcept { return state_->client.incarnation; }

std::unique_ptr<RemoteTasks> RemoteMaster::open(const OpTable&) {
  throw_error(internal("the sessions of a remote master have no tasks of their own"));
}

std::unique_ptr<RemoteSession> RemoteMaster::open_session(const GraphStore& graph, const SessionOptions& options) {
  const Duration timeout = state_->client.startup_timeout;
  CreateSession create;
  create.time_left_ns = timeout.count();
  create.soft_placement = options.soft_placement;
  create.passes = options.passes;
  create.filters = state_->filters;
  auto session = std::make_shared<detail::SessionAtMaster>(
      state_, std::move(create), options.clock != nullptr ? options.clock : state_->client.clock);
  const std::size_t count = session->describe(graph);
  detail::wait_for_status(options.pool.get(), [&](auto done) {
    session->prepare(
        count, state_->client.clock->after(timeout),
        [session, done](const Status& status, const std::shared_ptr<Connection>&) { done(session->explain(status)); });
  });
  return std::make_unique<detail::SessionOfMaster>(std::move(session));
}

std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec& cluster, const std::string& task,
                                            std::vector<std::string> filters, ServerOptions options) {
  const detail::TaskFilters wanted({&task, 1});
  std::vector<std::string> found;
  for (const ClusterSpec::Task& candidate : cluster.tasks()) {
    if (wanted.want(candidate.name)) found.push_back(candidate.name);
  }
  if (found.size() != 1) {
    throw_error(invalid_argument(str_cat("the cluster has ", found.size(), " tasks that are '", task, "', not one")));
  }
  detail::TaskFilters(filters).check(detail::names_of(cluster));
  return std::shared_ptr<RemoteMaster>(new RemoteMaster(std::make_shared<RemoteMaster::State>(
      RemoteMaster::State{detail::ThinClient(cluster, std::move(options)), found.front(), std::move(filters)})));
}

void reset(const ClusterSpec& cluster, std::vector<std::string> containers, std::vector<std::string> filters,
           ServerOptions options) {
  std::vector<std::string> tasks = detail::names_of(cluster);
  const detail::TaskFilters wanted(filters);
  wanted.check(tasks);
  std::erase_if(tasks, [&](const std::string& task) { return !wanted.want(task); });
  const detail::ThinClient client(cluster, std::move(options));
  const auto close = [&] { client.peers->close(cancelled("all tasks have been asked")); };
  try {
    detail::wait_for_status(nullptr, [&](auto done) {
      reset_tasks_async(*client.peers, tasks, std::move(containers), client.clock->after(client.startup_timeout),
                        std::move(done));
    });
  } catch (...) {
    close();
    throw;
  }
  close();
}

}  // namespace dflow::net
