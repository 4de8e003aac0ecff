#pragma once

#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/net/master/hosted_session.ipp>
#include <dflow/net/master/master.hpp>
#include <dflow/net/tasks/reset_devices.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/session/options.hpp>
#include <dflow/session/target.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

/// The cluster as the master has found it for one session.
class FoundTarget final : public SessionTarget {
 public:
  FoundTarget(std::vector<std::shared_ptr<Device>> devices, std::string task, std::uint64_t incarnation,
              std::unique_ptr<ClusterTasks> found, std::shared_ptr<TaskCounters> counters)
      : devices_(std::move(devices)),
        task_(std::move(task)),
        incarnation_(incarnation),
        found_(std::move(found)),
        counters_(std::move(counters)) {}

  std::vector<std::shared_ptr<Device>> local_devices() const override { return devices_; }
  std::string task() const override { return task_; }
  std::uint64_t incarnation() const noexcept override { return incarnation_; }
  std::unique_ptr<RemoteTasks> open_tasks(const SessionOptions&) override { return std::move(found_); }
  void note_step(Code code) noexcept override {
    if (counters_ != nullptr) counters_->count_step(code);
  }

 private:
  const std::vector<std::shared_ptr<Device>> devices_;
  const std::string task_;
  const std::uint64_t incarnation_;
  std::unique_ptr<ClusterTasks> found_;
  const std::shared_ptr<TaskCounters> counters_;
};

}  // namespace detail

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
  return {options_.task,  options_.next_session(), options_.peers, options_.steps,
          options_.clock, options_.pool,           options_.log};
}

std::shared_ptr<Master::HostedSession> Master::find(const Visit::Id& visit, std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  throw_if_error(stopped_);
  if (std::shared_ptr<HostedSession> found = sessions_.find(visit, session)) return found;
  throw_error(Status::not_found(str_cat("there is no session ", session)));
}

std::shared_ptr<Master::HostedSession> Master::take(const Visit::Id& visit, std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  return sessions_.take(visit, session);
}

void Master::reserve(const Visit::Id& visit, HostedSession& session, std::uint64_t bytes) {
  std::uint64_t all = bytes;
  if (const auto of_visit = sessions_.by_visit().find(visit); of_visit != sessions_.by_visit().end()) {
    for (const auto& [number, other] : of_visit->second) all += other->graph_bytes;
  }
  if (all > options_.max_graph_bytes) {
    throw_error(
        Status::resource_exhausted(str_cat("more than ", options_.max_graph_bytes, " bytes of one client's graphs")));
  }
  session.graph_bytes += bytes;
}

void Master::create_session(const Visit& visit, Incoming& request, Responder& respond) {
  const CreateSession create = from_body<CreateSession>(request.body);
  const std::vector<std::string> others = others_that_match(create.filters);
  std::shared_ptr<HostedSession> hosted;
  ByteCharge charge = detail::charge_graph(request);
  {
    const std::lock_guard lock(mutex_);
    throw_if_error(stopped_);
    if (visit.is_over()) throw_error(Status::unavailable("the connection has ended"));
    hosted = std::make_shared<HostedSession>(next_session_++);
    reserve(visit.id(), *hosted, request.payload.size());
    hosted->charges.push_back(std::move(charge));
    sessions_.add(visit.id(), hosted->number(), hosted, options_.max_sessions);
  }
  Duration timeout = options_.startup_timeout;
  if (create.time_left_ns > 0) timeout = std::min(timeout, Duration(std::chrono::nanoseconds(create.time_left_ns)));
  auto finish = [self = shared_from_this(), id = visit.id(), hosted, respond = std::move(respond),
                 cancellation = request.cancellation](Status status) mutable {
    if (status.ok() && cancellation.is_cancelled()) status = cancellation.status();
    if (status.ok()) return respond(Outgoing{to_body(SessionVersion{hosted->number(), 0}), {}});
    self->take(id, hosted->number());
    respond(status.with_task(self->options_.task));
  };
  ClusterTasks::find_async(
      cluster_options(), others, timeout,
      [self = shared_from_this(), hosted, create, payload = std::move(request.payload), finish = std::move(finish)](
          Status status, std::unique_ptr<ClusterTasks> found) mutable {
        if (!status.ok()) return finish(std::move(status));
        self->options_.pool->schedule([self, hosted, create, payload = std::move(payload), found = std::move(found),
                                       finish = std::move(finish)]() mutable {
          try {
            const Options& o = self->options_;
            SessionOptions options;
            options.ops = o.ops;
            options.target =
                std::make_shared<detail::FoundTarget>(o.devices, o.task, o.incarnation, std::move(found), o.counters);
            options.passes = create.passes;
            options.soft_placement = create.soft_placement;
            options.clock = o.clock;
            options.callbacks = o.pool;
            options.incarnation = o.random();
            hosted->make(from_binary(payload), std::move(options));
            finish({});
          } catch (...) {
            finish(status_of_current_exception());
          }
        });
      });
}

void Master::extend_session(const Visit::Id& visit, Incoming& request, Responder& respond) {
  const SessionVersion expected = from_body<SessionVersion>(request.body);
  const std::shared_ptr<HostedSession> hosted = find(visit, expected.session);
  const std::uint64_t bytes = request.payload.size();
  ByteCharge charge = detail::charge_graph(request);
  {
    const std::lock_guard lock(mutex_);
    reserve(visit, *hosted, bytes);
  }
  options_.pool->schedule([self = shared_from_this(), hosted, expected, bytes, charge = std::move(charge),
                           payload = std::move(request.payload), respond = std::move(respond)]() mutable {
    try {
      // The reply is made before, so that a client is never told of an error after its session has been extended.
      Outgoing reply{to_body(SessionVersion{expected.session, expected.version + 1}), {}};
      hosted->extend(from_binary(payload), expected.version, self->options_.ops.ops());
      {
        const std::lock_guard lock(self->mutex_);
        hosted->charges.push_back(std::move(charge));
      }
      respond(std::move(reply));
    } catch (...) {
      {
        const std::lock_guard lock(self->mutex_);
        hosted->graph_bytes -= bytes;
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
  run->charge = ByteCharge(request.budget);
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
  std::vector<std::shared_ptr<HostedSession>> ended;
  if (std::shared_ptr<HostedSession> found = take(visit, session)) ended.push_back(std::move(found));
  drop(std::move(ended), Status::cancelled("the session was closed"));
}

void Master::begin_partial_run(const Visit::Id& visit, Incoming& request, Responder& respond) {
  BeginPartialRun begin = from_body<BeginPartialRun>(request.body);
  const std::shared_ptr<HostedSession> hosted = find(visit, begin.session);
  options_.pool->schedule([self = shared_from_this(), hosted, begin = std::move(begin), respond = std::move(respond),
                           cancellation = request.cancellation]() mutable {
    try {
      const std::uint64_t number = hosted->begin(begin, self->options_.max_partial_runs, self->options_.clock->now());
      if (!cancellation.is_cancelled()) return respond(Outgoing{to_body(PartialRunName{begin.session, number}), {}});
      hosted->end_partial(number, cancellation.status());
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
  next->charge = ByteCharge(request.budget);
  next->respond = std::move(respond);
  next->cancellation = request.cancellation;
  options_.pool->schedule([next = std::move(next)] { next->start(next); });
}

void Master::end_partial_run(const Visit::Id& visit, const PartialRunName& name) {
  std::shared_ptr<HostedSession> hosted;
  {
    const std::lock_guard lock(mutex_);
    hosted = sessions_.find(visit, name.session);
  }
  if (hosted == nullptr) return;
  std::shared_ptr<Partial> ended = hosted->end_partial(name.run, Status::cancelled("the partial run was ended"));
  if (ended == nullptr) return;
  options_.pool->schedule([ended = std::move(ended)]() mutable { ended.reset(); });
}

void Master::forget(const Visit& visit, const Status& why) {
  std::vector<std::shared_ptr<HostedSession>> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = sessions_.take_all(visit.id());
  }
  drop(std::move(ended), why);
}

void Master::stop(const Status& why) {
  std::vector<std::shared_ptr<HostedSession>> ended;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_.ok()) return;
    stopped_ = why;
    ended = sessions_.take_all();
  }
  drop(std::move(ended), why);
}

void Master::drop(std::vector<std::shared_ptr<HostedSession>> sessions, const Status& why) {
  if (sessions.empty()) return;
  for (const std::shared_ptr<HostedSession>& hosted : sessions) hosted->end(why);
  options_.pool->schedule([sessions = std::move(sessions)]() mutable { sessions.clear(); });
}

detail::SessionCount Master::count_sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.count();
}

void Master::add_to(TaskStatus& status) const {
  std::vector<std::pair<TaskStatus::Session, std::shared_ptr<HostedSession>>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [visit, of_client] : sessions_.by_visit()) {
      for (const auto& [number, session] : of_client) {
        sessions.emplace_back(TaskStatus::Session{visit.task, visit.incarnation, number, 0, true}, session);
      }
    }
  }
  const Clock::time_point now = options_.clock->now();
  for (auto& [session, hosted] : sessions) {
    const std::vector<Clock::time_point> under_way = hosted->under_way();
    session.num_shares = under_way.size();
    for (const Clock::time_point came : under_way) {
      const auto age = std::chrono::duration_cast<std::chrono::nanoseconds>(now - came);
      status.steps.push_back({0, session.client, session.number, age.count(), true});
    }
    status.num_steps += under_way.size();
    if (status.sessions.size() < TaskStatus::max_entries) status.sessions.push_back(std::move(session));
  }
  status.num_sessions += sessions.size();
  std::ranges::stable_sort(status.steps, std::greater(), &TaskStatus::Step::age_ns);
  if (status.steps.size() > TaskStatus::max_entries) status.steps.resize(TaskStatus::max_entries);
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
