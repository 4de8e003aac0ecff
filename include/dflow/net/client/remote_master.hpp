#pragma once

/// Public: sessions with steps that a task of a cluster leads.

#include <dflow/core/device_info.hpp>
#include <dflow/net/server.hpp>
#include <dflow/session/target.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dflow::net {

/// For `SessionOptions::target`: the master of one task keeps the sessions of this process. A session sends the graph
/// once, and later its new nodes when a step needs them. A step costs one message with its feeds and one reply with
/// its fetches. A partial run costs one message and one reply for each feed and each fetch. This process computes
/// nothing and connects to no other task.
///
/// ```cpp
/// df::Session session(graph, {.target = df::net::remote_master(cluster, "/job:worker/task:0")});
/// float value = session.run({{x, 3.0f}}, y).scalar();
/// ```
///
/// The session's state in the master lives as long as the connection. After a lost connection, the next step makes
/// the state anew from the graph; variables stay in their tasks. The master's task may have other ops than this
/// process; only the ops of the graph count.
///
/// Thread safety: safe. Errors of sessions: as for a session with `Server::target()`, and InvalidArgument, naming the
/// node, for an op that the master does not know. Errors of steps: Unavailable if the master is lost, Aborted if it
/// has been started anew. A partial run ends with the connection on which it began. `SessionOptions::inter_op` and
/// `num_threads` have no effect: the computing tasks set their own threads.
class RemoteMaster final : public SessionTarget {
 public:
  /// Stops the connection. Sessions keep their target.
  ~RemoteMaster() override;

  /// Asks the master for the devices of its own task and of the tasks that match the filters, and waits. Errors:
  /// Unavailable, with the list of missing tasks.
  std::vector<DeviceInfo> devices() const;
  /// Drops the resources (variables, queues) in the containers on all tasks that match the filters, and waits. The
  /// name "" is the container of resources that name none. An empty list means all containers except the library's
  /// own ("_..."). Variables have no value afterwards; running steps end with an error or with the resources that
  /// they hold. Errors: InvalidArgument for the name of a container of the library; Unavailable, with the list of
  /// tasks that were not reached.
  void reset(std::vector<std::string> containers = {}) const;

  std::vector<std::shared_ptr<Device>> local_devices() const override { return {}; }
  std::string task() const override;
  std::uint64_t incarnation() const noexcept override;
  std::unique_ptr<RemoteTasks> open_tasks(const SessionOptions& options) override;
  std::unique_ptr<RemoteSession> open_session(const GraphStore& graph, const SessionOptions& options) override;
  std::shared_ptr<FileSystem> files() const override;

  struct State;

 private:
  friend std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec&, const std::string&, std::vector<std::string>,
                                                     ServerOptions);
  explicit RemoteMaster(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

/// The master of `task` ("/job:worker/task:0"). With `filters`, its sessions know only the other tasks that match a
/// filter, as with `Server::target`. Connects on first use. Takes the transport, clock, timeouts, log, random numbers
/// and incarnation from `options`, and the files, which are for the savers of a `Supervisor` in this process. Ops use
/// the files of the task that they run on (its `ServerOptions::files`). Errors: InvalidArgument if the cluster does not
/// have the task, for a filter that is not a device name or matches none of the cluster's tasks, and for the cluster's
/// addresses, as of `Server`.
std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec& cluster, const std::string& task,
                                            std::vector<std::string> filters = {}, ServerOptions options = {});

/// Drops the resources (variables, queues) in the containers on all tasks of the cluster that match a filter, and
/// waits. This process asks each task itself. The names of containers, "" and the empty list mean the same as for
/// `RemoteMaster::reset`. Takes the same members of `options` as `remote_master`. Errors: Unavailable, after
/// `ServerOptions::startup_timeout`, with the list of tasks that were not reached; InvalidArgument as for
/// `remote_master` (filters) and `RemoteMaster::reset` (containers).
void reset(const ClusterSpec& cluster, std::vector<std::string> containers = {}, std::vector<std::string> filters = {},
           ServerOptions options = {});

}  // namespace dflow::net
