#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/client/remote_partial_run_client.ipp>
#include <dflow/net/client/remote_run.ipp>
#include <dflow/net/client/remote_session_client.ipp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/tasks/reset_devices.hpp>
#include <dflow/session/options.hpp>

#include <algorithm>
#include <utility>

namespace dflow::net {

namespace detail {

/// A step of a session that the master keeps. Its runs stand in this process, and ask the master.
class RemoteMasterStep final : public RemoteStep {
 public:
  explicit RemoteMasterStep(std::shared_ptr<const RemoteStepRequest> step) : step_(std::move(step)) {}

  std::shared_ptr<StepPart> make_part(std::vector<AnyTensor> feeds, std::span<AnyTensor> results) override {
    return std::make_shared<RemoteRun>(step_, std::move(feeds), results);
  }
  std::shared_ptr<RemotePartialRun> make_partial_run(std::vector<std::vector<bool>> needed_feeds,
                                                     RemotePartialRun::Events events) override {
    return std::make_shared<RemotePartialRunClient>(step_, std::move(needed_feeds), std::move(events));
  }
  Status explain(const Status& status) const override { return step_->session->explain(status); }

 private:
  const std::shared_ptr<const RemoteStepRequest> step_;
};

/// The session that the master keeps, as a `Session` of this process has it. Its steps share the client with it, so the
/// master forgets the session when all of them are gone.
class RemoteMasterSession final : public RemoteSession {
 public:
  explicit RemoteMasterSession(std::shared_ptr<RemoteSessionClient> session) : session_(std::move(session)) {}

  std::shared_ptr<RemoteStep> step(const GraphStore& graph, StepNames names) override {
    auto step = std::make_shared<RemoteStepRequest>();
    step->session = session_;
    step->num_nodes = session_->describe(graph);
    step->names = std::move(names);
    return std::make_shared<RemoteMasterStep>(std::move(step));
  }

 private:
  const std::shared_ptr<RemoteSessionClient> session_;
};

std::vector<std::string> names_of(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const ClusterSpec::Task& task : cluster.tasks()) names.push_back(task.name);
  return names;
}

}  // namespace detail

RemoteMaster::RemoteMaster(std::shared_ptr<State> state) : state_(std::move(state)) {}

RemoteMaster::~RemoteMaster() { state_->client.end(Status::unavailable("the client has ended")); }

std::vector<DeviceInfo> RemoteMaster::devices() const {
  return from_body<DeviceList>(state_->call(Method::list_cluster_devices, to_body(NameList{state_->filters}))).devices;
}

void RemoteMaster::reset(std::vector<std::string> containers) const {
  state_->call(Method::reset_cluster, to_body(ResetCluster{{std::move(containers)}, {state_->filters}}));
}

std::string RemoteMaster::task() const { return state_->client.task; }
std::uint64_t RemoteMaster::incarnation() const noexcept { return state_->client.incarnation; }

std::shared_ptr<FileSystem> RemoteMaster::files() const { return state_->files; }

std::unique_ptr<RemoteTasks> RemoteMaster::open_tasks(const SessionOptions&) {
  throw_error(Status::internal("the sessions of a remote master have no tasks of their own"));
}

std::unique_ptr<RemoteSession> RemoteMaster::open_session(const GraphStore& graph, const SessionOptions& options) {
  const Duration most = state_->client.startup_timeout;
  const Duration timeout = std::min(options.startup_timeout.value_or(most), most);
  CreateSession create;
  create.time_left_ns = timeout.count();
  create.soft_placement = options.soft_placement;
  create.passes = options.passes;
  create.filters = state_->filters;
  auto session = std::make_shared<detail::RemoteSessionClient>(
      state_, std::move(create), options.clock != nullptr ? options.clock : state_->client.clock);
  const std::size_t count = session->describe(graph);
  const auto prepare = [&](auto done) {
    session->prepare(
        count, state_->client.clock->after(timeout),
        [session, done](const Status& status, const std::shared_ptr<Connection>&) { done(session->explain(status)); });
  };
  detail::wait_for_status(options.pool.get(), prepare, options.stop);
  return std::make_unique<detail::RemoteMasterSession>(std::move(session));
}

std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec& cluster, const std::string& task,
                                            std::vector<std::string> filters, ServerOptions options) {
  const detail::TaskFilters wanted({&task, 1});
  std::vector<std::string> found;
  for (const ClusterSpec::Task& candidate : cluster.tasks()) {
    if (wanted.want(candidate.name)) found.push_back(candidate.name);
  }
  if (found.size() != 1) {
    throw_error(
        Status::invalid_argument(str_cat("the cluster has ", found.size(), " tasks that are '", task, "', not one")));
  }
  detail::TaskFilters(filters).check(detail::names_of(cluster));
  std::shared_ptr<FileSystem> files = options.files;
  return std::shared_ptr<RemoteMaster>(new RemoteMaster(std::make_shared<RemoteMaster::State>(RemoteMaster::State{
      detail::ThinClient(cluster, std::move(options)), found.front(), std::move(filters), std::move(files)})));
}

void reset(const ClusterSpec& cluster, std::vector<std::string> containers, std::vector<std::string> filters,
           ServerOptions options) {
  std::vector<std::string> tasks = detail::names_of(cluster);
  const detail::TaskFilters wanted(filters);
  wanted.check(tasks);
  std::erase_if(tasks, [&](const std::string& task) { return !wanted.want(task); });
  const detail::ThinClient client(cluster, std::move(options));
  const auto close = [&] { client.end(Status::cancelled("all tasks have been asked")); };
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
