#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/passes/step_graph_def.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dflow::net {

namespace detail {

TaskFilters::TaskFilters(std::span<const std::string> filters) {
  filters_.reserve(filters.size());
  for (const std::string& filter : filters) filters_.push_back({DeviceName::parse(filter), filter});
}

bool TaskFilters::want(const std::string& task) const {
  const DeviceName name = DeviceName::parse(task);
  return filters_.empty() || std::any_of(filters_.begin(), filters_.end(),
                                         [&](const Filter& filter) { return filter.name.is_compatible_with(name); });
}

void TaskFilters::check(std::span<const std::string> tasks) const {
  std::vector<DeviceName> names;
  names.reserve(tasks.size());
  for (const std::string& task : tasks) names.push_back(DeviceName::parse(task));
  for (const Filter& filter : filters_) {
    const auto matches = [&](const DeviceName& task) { return filter.name.is_compatible_with(task); };
    if (std::any_of(names.begin(), names.end(), matches)) continue;
    throw_error(Status::invalid_argument(str_cat("the filter '", filter.text, "' matches no task of the cluster")));
  }
}

void add_stats(StatsCollector& to, const RunShareReply& reply, const ClockOffset& clock, std::int64_t asked,
               std::int64_t returned, std::int64_t now) {
  if (!reply.is_traced) return;
  const std::int64_t offset = clock.during({asked, reply.came_ns, reply.answered_ns, returned});
  const std::int64_t ago = wrapped_difference(now, wrapped_difference(reply.began_ns, offset));
  to.add(reply.stats, wrapped_difference(to.now_ns(), ago));
}

/// The devices of many tasks, as they answer.
struct DeviceSurvey {
  struct Answer {
    Status status;
    std::vector<DeviceInfo> devices;
    std::uint64_t incarnation = 0;
    bool has_come = false;
  };

  const std::shared_ptr<Clock> clock;
  std::mutex mutex;
  UniqueFunction<void()> all_answered;  ///< or one with an error that stays
  TimerId timer{};                      ///< of the next line about late tasks
  std::map<std::string, Answer>
      answers;  ///< one for each task from the beginning, so that noting an answer takes no memory
  std::size_t num_due = 0;

  explicit DeviceSurvey(std::shared_ptr<Clock> its_clock) : clock(std::move(its_clock)) {}

  static bool may_come(const Status& status) noexcept {
    return status.code() == Code::unavailable || status.code() == Code::deadline_exceeded;
  }

  void answer(const std::string& task, const Status& status, std::vector<DeviceInfo> devices,
              std::uint64_t incarnation) noexcept {
    bool is_over = false;
    {
      const std::lock_guard lock(mutex);
      if (num_due == 0) return;
      answers.find(task)->second = {status, std::move(devices), incarnation, true};
      num_due = status.ok() || may_come(status) ? num_due - 1 : 0;
      is_over = num_due == 0;
      if (is_over) clock->cancel(timer);
    }
    if (is_over) std::exchange(all_answered, nullptr)();
  }

  /// The tasks that have not answered; empty if all have.
  std::string late(const Peers& peers) {
    constexpr std::size_t most = 8;
    const std::lock_guard lock(mutex);
    if (num_due == 0) return {};
    std::string names;
    std::size_t count = 0;
    for (const auto& [task, answer] : answers) {
      if (answer.has_come || ++count > most) continue;
      names += str_cat(count == 1 ? "" : ", ", task, " (", peers.address_of(task), ")");
    }
    if (count > most) names += str_cat(" and ", count - most, " others");
    return count == 0 ? std::string() : str_cat(count, " of ", answers.size(), " other tasks: ", names);
  }

  /// Precondition: all have answered, or one with an error that stays.
  Status outcome() const {
    std::size_t num_missing = 0;
    std::string missing;
    for (const auto& [task, answer] : answers) {
      const Status& status = answer.status;
      if (status.ok()) continue;
      ++num_missing;
      if (!may_come(status)) return status.with_task(task);
      missing += str_cat(missing.empty() ? "" : "; ", task, " (", status.message(), ")");
    }
    if (num_missing == 0) return {};
    return Status::unavailable(str_cat(num_missing, " of ", answers.size(), " other tasks are missing: ", missing));
  }
};

/// Puts a line in the log as long as some have not answered: the first after `pause`, each other as long again after
/// it.
void watch_survey(const std::shared_ptr<DeviceSurvey>& survey, const std::shared_ptr<Peers>& peers, Duration pause,
                  Duration waited) {
  const std::lock_guard lock(survey->mutex);
  if (survey->num_due == 0) return;
  survey->timer = survey->clock->schedule_after(
      pause, [of = std::weak_ptr(survey), by = std::weak_ptr(peers), pause, waited = waited + pause] {
        const std::shared_ptr<DeviceSurvey> asked = of.lock();
        const std::shared_ptr<Peers> asking = by.lock();
        if (asked == nullptr || asking == nullptr) return;
        tell([&] {
          const std::string late = asked->late(*asking);
          const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
          if (late.empty()) return;
          asking->log([&] { return str_cat("a session has waited for ", seconds, " s for ", late); });
          watch_survey(asked, asking, 2 * pause, waited);
        });
      });
}

/// Errors: InvalidArgument if a task lists devices of another one, of an incarnation that is not its own, or one twice.
void check_device_list(const std::string& task, std::uint64_t incarnation, std::span<const DeviceInfo> devices) {
  std::unordered_set<std::string_view> listed;
  for (const DeviceInfo& device : devices) {
    const StatusOr<DeviceName> name = DeviceName::try_parse(device.name);
    if (name.ok() && name->is_full() && name->type == device.type && name->to_string() == device.name &&
        task_of(device.name) == task && device.incarnation == incarnation && listed.insert(device.name).second) {
      continue;
    }
    throw_error(
        Status::invalid_argument(str_cat(task, " lists '", device.name, "' among its devices")).with_task(task));
  }
}

}  // namespace detail

void ClusterTasks::find_async(Options options, const std::vector<std::string>& tasks, Duration timeout, Found done) {
  std::unique_ptr<ClusterTasks> cluster(new ClusterTasks);
  cluster->state_->options = std::move(options);
  if (tasks.empty()) return done({}, std::move(cluster));
  const Options& o = cluster->state_->options;
  const std::shared_ptr<Peers> peers = o.peers;
  const Clock::time_point deadline = o.clock->after(timeout);
  const auto survey = std::make_shared<detail::DeviceSurvey>(o.clock);
  for (const std::string& task : tasks) survey->answers[task];
  survey->num_due = survey->answers.size();
  survey->all_answered = [&found = *survey, tasks, cluster = std::move(cluster), done = std::move(done)]() mutable {
    Status status;
    try {
      throw_if_error(found.outcome());
      for (const std::string& task : tasks) {
        const detail::DeviceSurvey::Answer& answer = found.answers.at(task);
        cluster->state_->clocks[task];
        cluster->state_->incarnations[task] = answer.incarnation;
        cluster->devices_.insert(cluster->devices_.end(), answer.devices.begin(), answer.devices.end());
      }
    } catch (...) {
      status = status_of_current_exception();
      cluster = nullptr;
    }
    done(std::move(status), std::move(cluster));
  };
  constexpr Duration is_late = std::chrono::seconds(2);
  detail::watch_survey(survey, peers, is_late, {});
  for (const std::string& task : tasks) {
    const auto ask = [survey, task, deadline](Status status, const std::shared_ptr<Connection>& connection) {
      if (!status.ok()) return survey->answer(task, status, {}, 0);
      Call call = detail::make_call(Method::list_devices);
      call.deadline = deadline;
      connection->call(std::move(call), [survey, task, incarnation = connection->peer().incarnation](
                                            Status replied, const std::string& body) {
        std::vector<DeviceInfo> devices;
        try {
          if (replied.ok()) devices = from_body<DeviceList>(body).devices;
          detail::check_device_list(task, incarnation, devices);
        } catch (...) {
          replied = status_of_current_exception();
        }
        survey->answer(task, replied, std::move(devices), incarnation);
      });
    };
    peers->connect(task, Channel::control, deadline, ask);
  }
}

std::unique_ptr<ClusterTasks> ClusterTasks::find(Options options, const std::vector<std::string>& tasks,
                                                 Duration timeout, const std::stop_token& stop) {
  // A wait may end before it is found (in a simulated process that crashes).
  struct Finding {
    PoolEvent is_found;
    std::atomic<bool> has_ended{false};
    Status outcome;
    std::unique_ptr<ClusterTasks> cluster;
    void end(Status status, std::unique_ptr<ClusterTasks> found) {
      if (has_ended.exchange(true)) return;
      outcome = std::move(status);
      cluster = std::move(found);
      is_found.set();
    }
  };
  const std::shared_ptr<ThreadPool> pool = options.pool;
  const auto finding = std::make_shared<Finding>();
  find_async(std::move(options), tasks, timeout, [finding](Status status, std::unique_ptr<ClusterTasks> cluster) {
    finding->end(std::move(status), std::move(cluster));
  });
  const std::stop_callback stopped(
      stop, [finding] { finding->end(Status::cancelled("stop was requested before all tasks were found"), nullptr); });
  pool->wait(finding->is_found);
  throw_if_error(finding->outcome);
  return std::move(finding->cluster);
}

ClusterTasks::~ClusterTasks() {
  const Options& o = state_->options;
  for (const auto& [task, incarnation] : state_->incarnations) {
    try {
      const std::shared_ptr<Connection> connection = o.peers->find(task, Channel::control);
      if (connection == nullptr) continue;
      connection->call(detail::make_call(Method::close_session, to_body(ShareName{o.session, 0})),
                       [](const Status&, const std::string&) {});
    } catch (...) {  // no memory for it: the task forgets the session when the connection ends
    }
  }
}

std::shared_ptr<Rendezvous> ClusterTasks::begin_step(std::uint64_t id) {
  return state_->options.steps->begin(id, state_->options.client);
}

namespace detail {

/// The share of a step that one task runs, as its master has it.
class ClusterShare final : public RemoteShare, public std::enable_shared_from_this<ClusterShare> {
 public:
  using State = ClusterTasks::State;

  ClusterShare(std::shared_ptr<State> state, std::string task, std::vector<RemotePartition> partitions)
      : state_(std::move(state)), task_(std::move(task)), number_(state_->next_share.fetch_add(1)) {
    SharePartitions share;
    for (RemotePartition& partition : partitions) {
      note_places(partition.graph);
      share.partitions.push_back({partition.device, to_step_graph_def(partition.graph)});
    }
    written_ = std::make_shared<const std::string>(to_body(share));
  }

  ~ClusterShare() override {
    const std::shared_ptr<Connection> connection = connection_.lock();
    if (connection == nullptr) return;
    try {
      connection->call(make_call(Method::forget_share, to_body(name())), [](const Status&, const std::string&) {});
    } catch (...) {  // no memory for it: the task forgets it with the session
    }
  }

  std::shared_ptr<StepPart> make_part() override;

  const std::string& task() const noexcept { return task_; }
  /// The connection over which the task has the share; null if the share must be sent, or another connection found.
  std::shared_ptr<Connection> registered_connection() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Connection> connection = is_registered_ ? connection_.lock() : nullptr;
    return connection != nullptr && connection->is_open() ? connection : nullptr;
  }
  /// The key of a tensor that the task has sent to this one. Errors: InvalidArgument for a tensor that the task must
  /// not send.
  std::shared_ptr<const RendezvousKey> key_of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (const auto found = keys_.find(text); found != keys_.end()) return found->second;
    auto key = std::make_shared<const RendezvousKey>(RendezvousKey::parse(text).value());
    if (detail::task_of(key->source_device()) != task_ || key->source_incarnation() != state_->incarnations.at(task_) ||
        detail::task_of(key->destination_device()) != state_->options.client) {
      throw_error(Status::invalid_argument(str_cat("'", text, "' is not ", task_, "'s to send")));
    }
    if (keys_.size() < max_keys) keys_.emplace(text, key);
    return key;
  }
  ShareName name() const noexcept { return {state_->options.session, number_}; }
  const State& state() const noexcept { return *state_; }
  ClockOffset& clock_offset() const { return state_->clocks.at(task_); }

  using Registered = UniqueFunction<void(Status)>;

  /// Sends it to the task, unless it was sent over this connection before, and calls `done` when the task has it.
  /// Errors: the task's; Aborted if it is not the task that the session was made with.
  void register_on(const std::shared_ptr<Connection>& connection, Registered done) {
    if (connection->peer().incarnation != state_->incarnations.at(task_)) {
      return done(
          Status::aborted(
              str_cat(task_, " has been started anew: what it held is gone, and sessions with it must be made anew"))
              .with_task(task_));
    }
    std::shared_ptr<Registering> begun;
    {
      const std::lock_guard lock(mutex_);
      if (connection_.lock() != connection) {
        begun = std::make_shared<Registering>();
        begun->waiting.push_back(std::exchange(done, nullptr));
        connection_ = connection;
        is_registered_ = false;
        registering_ = begun;
      } else if (!is_registered_) {
        registering_->waiting.push_back(std::exchange(done, nullptr));
      }
    }
    if (done) return done({});
    if (begun == nullptr) return;
    try {
      Call call = make_call(Method::register_share, to_body(name()));
      call.message.payload.parts.push_back(as_byte_span(*written_));
      call.message.payload.owner = written_;
      connection->call(std::move(call), [self = shared_from_this(), begun](const Status& status, const std::string&) {
        self->finish_registering(begun, status.with_task(self->task_));
      });
    } catch (...) {
      finish_registering(begun, status_of_current_exception());  // nobody else ends it
    }
  }

  /// The task may have forgotten it (with an earlier connection): the next run sends it again, which changes nothing
  /// where it has not.
  void register_again() {
    const std::lock_guard lock(mutex_);
    if (is_registered_) connection_.reset();
  }

  Status explain(const Status& status) const override {
    if (status.ok() || status.node().empty() || status.where().line() != 0) return status;
    auto found = where_.find(std::string(status.node()));
    if (found == where_.end()) found = where_.find(std::string(without_copy(status.node())));
    return found == where_.end() ? status : status.with_location(found->second);
  }

 private:
  /// The share is on its way, over one connection.
  struct Registering {
    std::vector<Registered> waiting;
  };

  /// Callers that wait for it over a later connection are told the end of this connection.
  void finish_registering(const std::shared_ptr<Registering>& registering, const Status& status) {
    std::vector<Registered> waiting;
    {
      const std::lock_guard lock(mutex_);
      if (registering_ == registering) {
        registering_ = nullptr;
        is_registered_ = status.ok();
        if (!status.ok()) connection_.reset();  // the next run tries again
      }
      waiting.swap(registering->waiting);
    }
    for (Registered& done : waiting) done(status);
  }

  /// Notes the places of its nodes, and of the nodes of called functions, each once.
  void note_places(const StepGraph& part) {
    std::vector<const StepGraph*> to_do{&part};
    std::unordered_set<const StepGraph*> seen;
    while (!to_do.empty()) {
      const StepGraph& graph = *to_do.back();
      to_do.pop_back();
      for (const StepNode& node : graph.nodes) where_.try_emplace(node->name, node->where);
      for (const std::shared_ptr<const StepCall>& call : graph.calls) {
        for (const std::shared_ptr<const StepGraph>& body : call->bodies) {
          if (body != nullptr && seen.insert(body.get()).second) to_do.push_back(body.get());
        }
      }
    }
  }

  static constexpr std::size_t max_keys = 4096;

  const std::shared_ptr<State> state_;
  const std::string task_;
  const std::uint64_t number_;
  std::shared_ptr<const std::string> written_;
  std::unordered_map<std::string, SourceLocation> where_;  ///< of its nodes
  std::mutex mutex_;
  std::weak_ptr<Connection> connection_;  ///< that it was sent over
  bool is_registered_ = false;
  std::shared_ptr<Registering> registering_;  ///< over that connection; null if it is not on its way
  /// The keys of received tensors; there are few of them.
  std::unordered_map<std::string, std::shared_ptr<const RendezvousKey>> keys_;
};

/// One run of a share in its task. Tensors that the task has sent to others unasked may be lost with the task, even
/// after its own part has ended. For this reason the task is watched as long as the step lasts.
class ShareRun final : public StepPart, public std::enable_shared_from_this<ShareRun> {
 public:
  explicit ShareRun(std::shared_ptr<ClusterShare> share) : share_(std::move(share)) {}
  ~ShareRun() override { watch_.try_deregister(); }

  void start(StepHandle& step, Done done) override {
    RunShare run;
    run.name = share_->name();
    run.step = step.id();
    run.trace = step.stats() != nullptr;
    run.time_left_ns = time_left_ns(step.deadline(), *share_->state().options.clock);
    {
      const std::lock_guard lock(mutex_);
      step_ = run.step;
      stats_ = step.stats();
      done_ = std::move(done);
      handle_ = step.weak_from_this();
    }
    deadline_ = step.deadline();
    if (const std::shared_ptr<Connection> known = share_->registered_connection()) return send_in_turn(known, run);
    Peers& peers = *share_->state().options.peers;
    if (const std::shared_ptr<Connection> open = peers.find(share_->task(), Channel::control)) {
      return run_on(open, std::move(run));
    }
    peers.connect(share_->task(), Channel::control, {},
                  [self = shared_from_this(), run = std::move(run)](const Status& status,
                                                                    const std::shared_ptr<Connection>& connection) {
                    if (!status.ok()) return self->finish(status);
                    self->guarded([&] { self->run_on(connection, run); });
                  });
  }

  void cancel(const Status& status) override {
    std::shared_ptr<Connection> connection;
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_.ok()) return;
      cancelled_ = status.ok() ? Status::cancelled("the step was cancelled") : status;
      connection = connection_;
    }
    if (connection != nullptr) send_cancel(connection);
  }

  bool may_stay_silent() const noexcept override { return true; }
  std::string_view place() const noexcept override { return share_->task(); }

 private:
  void run_on(const std::shared_ptr<Connection>& connection, RunShare run) {
    share_->register_on(connection, [self = shared_from_this(), connection, run = std::move(run)](Status status) {
      if (!status.ok()) return self->finish(std::move(status));
      self->guarded([&] { self->send_in_turn(connection, run); });
    });
  }

  /// Sends nothing to a task that is far behind with the ends of steps, as after many deadlines that it cannot keep. A
  /// step that ends meanwhile has nothing to cancel there.
  void send_in_turn(const std::shared_ptr<Connection>& connection, RunShare run) {
    constexpr std::chrono::milliseconds until_next_look(5);
    constexpr std::size_t most_cancels = 4096;
    if (connection->num_cancels().load() < most_cancels || !connection->is_open()) return send_run(connection, run);
    Clock& clock = *share_->state().options.clock;
    clock.schedule_after(until_next_look, [weak = weak_from_this(), connection, run]() mutable {
      const std::shared_ptr<ShareRun> self = weak.lock();
      if (self == nullptr) return;
      if (Status cancelled = self->cancelled_status(); !cancelled.ok()) return self->finish(std::move(cancelled));
      self->guarded([&] {
        run.time_left_ns = time_left_ns(self->deadline_, *self->share_->state().options.clock);
        self->send_in_turn(connection, run);
      });
    });
  }

  /// A failure of work in somebody else's thread ends the run.
  template <class F>
  void guarded(const F& f) {
    try {
      f();
    } catch (...) {
      finish(status_of_current_exception());
    }
  }

  void send_run(const std::shared_ptr<Connection>& connection, const RunShare& run) {
    Status cancelled;
    {
      const std::lock_guard lock(mutex_);
      cancelled = cancelled_;
      if (cancelled.ok()) connection_ = connection;
    }
    if (!cancelled.ok()) return finish(std::move(cancelled));
    CancellationRegistration watch = connection->end().on_cancel([weak = weak_from_this()](const Status& why) {
      if (const std::shared_ptr<ShareRun> self = weak.lock()) self->lose(why);
    });
    {
      const std::lock_guard lock(mutex_);
      watch_ = std::move(watch);
    }
    Call call = make_call(Method::run_share, to_body(run));
    connection->call(std::move(call), [self = shared_from_this(), asked = now_ns()](Status status, std::string body) {
      // The statistics of a traced step may be many.
      const bool is_long = body.size() > max_io_thread_bytes;
      ThreadPool* const pool = is_long ? self->share_->state().options.pool.get() : nullptr;
      run_in_pool(pool, [self, asked, returned = self->now_ns(), status = std::move(status), body = std::move(body)] {
        self->end(status, body, asked, returned);
      });
    });
    // It may have been cancelled before there was a run to cancel.
    if (!cancelled_status().ok()) send_cancel(connection);
  }

  void end(Status status, const std::string& body, std::int64_t asked, std::int64_t returned) {
    if (status.ok()) status = take_reply(body, asked, returned);
    if (take_forgotten(status)) share_->register_again();
    finish(status.with_task(share_->task()));
  }

  std::int64_t now_ns() const { return clock_ns(share_->state().options.clock->now()); }

  Status take_reply(const std::string& body, std::int64_t asked, std::int64_t returned) {
    try {
      RunShareReply reply = from_body<RunShareReply>(body);
      ClockOffset& clock = share_->clock_offset();
      clock.add({asked, reply.came_ns, reply.answered_ns, returned});
      take_tensors(reply.pushed);
      const std::lock_guard lock(mutex_);  // the step lives as long as its completion is here
      if (done_ && stats_ != nullptr) add_stats(*stats_, reply, clock, asked, returned, now_ns());
      return {};
    } catch (...) {
      return status_of_current_exception();
    }
  }

  /// The step lives as long as its completion is here.
  void take_tensors(std::vector<PushedTensor>& pushed) {
    if (pushed.empty()) return;
    const std::shared_ptr<StepHandle> step = handle_of_step();
    if (step == nullptr) return;
    for (PushedTensor& tensor : pushed) {
      const std::shared_ptr<const RendezvousKey> key = share_->key_of(tensor.key);
      if (TaskLog* const log = share_->state().options.log.get(); log != nullptr && log->is_on()) {
        log->add_tensor(log->begin_tensor(LogRecord::What::received, step->id(), *key, share_->task()), tensor.tensor);
      }
      throw_if_error(step->rendezvous().send(*key, std::move(tensor.tensor), tensor.is_dead));
    }
  }

  std::shared_ptr<StepHandle> handle_of_step() {
    const std::lock_guard lock(mutex_);
    return handle_.lock();
  }

  /// The task is gone. A run that has not ended is told by the connection.
  void lose(const Status& why) {
    std::shared_ptr<StepHandle> step;
    {
      const std::lock_guard lock(mutex_);
      if (!has_succeeded_) return;
      step = handle_.lock();
    }
    if (step != nullptr) step->cancel(why.with_task(share_->task()));
  }

  Status cancelled_status() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  void send_cancel(const std::shared_ptr<Connection>& connection) {
    connection->num_cancels().fetch_add(1);
    connection->call(make_call(Method::cancel_step, to_body(CancelStep{step_, cancelled_status()})),
                     [connection](const Status&, const std::string&) { connection->num_cancels().fetch_sub(1); });
  }

  void finish(Status status) {
    Done done;
    CancellationToken end;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(done_, nullptr);
      has_succeeded_ = status.ok();
      if (connection_ != nullptr) end = connection_->end();
    }
    if (done) done(std::move(status));
    if (end.is_cancelled()) lose(end.status());  // meanwhile
  }

  const std::shared_ptr<ClusterShare> share_;
  std::mutex mutex_;
  std::uint64_t step_ = 0;
  StatsCollector* stats_ = nullptr;
  Done done_;
  Status cancelled_;
  std::shared_ptr<Connection> connection_;
  std::weak_ptr<StepHandle> handle_;
  Clock::time_point deadline_ = Clock::never;
  bool has_succeeded_ = false;
  CancellationRegistration watch_;
};

std::shared_ptr<StepPart> ClusterShare::make_part() { return std::make_shared<ShareRun>(shared_from_this()); }

}  // namespace detail

std::shared_ptr<RemoteShare> ClusterTasks::share(const std::string& task, std::vector<RemotePartition> partitions) {
  return std::make_shared<detail::ClusterShare>(state_, task, std::move(partitions));
}

}  // namespace dflow::net
