#pragma once

/// Public: a session whose steps a task of a cluster leads.

#include <dflow/core/device_info.hpp>
#include <dflow/net/server.hpp>
#include <dflow/session/target.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dflow::net {

/// A task of a cluster whose master keeps the sessions of this process: for `SessionOptions::target`. Such a session is
/// sent the graph once, and what it grows by when that is needed; a step costs one message with its feeds and a reply
/// with its fetches, a partial run a message and its reply for each feed and each fetch. Nothing is computed here, and
/// no other task is connected to.
///
/// ```cpp
/// df::Session session(graph, {.target = df::net::remote_master(cluster, "/job:worker/task:0")});
/// float value = session.run({{x, 3.0f}}, y).scalar();
/// ```
///
/// What the session makes lives as its connection does: after a loss the next step makes it anew, from the graph;
/// variables stay in their tasks. The master's task may have other ops than this process; only those of the graph
/// count.
///
/// Thread safety: safe. Errors of sessions: those of a session with `Server::target()`, and InvalidArgument, naming the
/// node, for an op that the master does not know; of their steps: Unavailable if the master is lost, Aborted if it has
/// been started anew. A partial run ends with the connection that it was begun over. `SessionOptions::inter_op` and
/// `num_threads` have no effect: that is for the tasks to say which compute.
class RemoteMaster final : public SessionTarget {
 public:
  /// Stops the connection. Sessions keep their target.
  ~RemoteMaster() override;

  /// Asks the master for the devices of its own task and of those that match the filters, and waits. Errors:
  /// Unavailable, with the list of tasks that are missing.
  std::vector<DeviceInfo> devices() const;
  /// Drops the resources (variables, queues) in these containers, "" for the one of those that name none, or, of no
  /// name, in all but the library's own ("_..."), on all tasks that match the filters, and waits. Variables have no
  /// value afterwards; steps that run end with an error or with what they hold. Errors: InvalidArgument for the name of
  /// one of the library's own; Unavailable, with the list of tasks that were not reached.
  void reset(std::vector<std::string> containers = {}) const;

  std::vector<std::shared_ptr<Device>> local_devices() const override { return {}; }
  std::string task() const override;
  std::uint64_t incarnation() const noexcept override;
  std::unique_ptr<RemoteTasks> open_tasks(const OpTable& ops) override;
  std::unique_ptr<RemoteSession> open_session(const GraphStore& graph, const SessionOptions& options) override;

  struct State;

 private:
  friend std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec&, const std::string&, std::vector<std::string>,
                                                     ServerOptions);
  explicit RemoteMaster(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

/// The master of `task` ("/job:worker/task:0"). With `filters` its sessions know those other tasks alone that one of
/// these matches, as with `Server::target`. Connects when it is first needed. Of `options` the transport, clock,
/// timeouts, log, random numbers and incarnation count. Errors: InvalidArgument if the cluster has no such task, and
/// for a filter that is no device's name or matches none of its tasks.
std::shared_ptr<RemoteMaster> remote_master(const ClusterSpec& cluster, const std::string& task,
                                            std::vector<std::string> filters = {}, ServerOptions options = {});

/// Drops the resources (variables, queues) in these containers, "" for the one of those that name none, or, of no name,
/// in all but the library's own, on all tasks of the cluster that match a filter, each asked from here; and waits. What
/// `RemoteMaster::reset` says holds. Of `options` what counts for `remote_master` does. Errors: Unavailable, after
/// `ServerOptions::startup_timeout`, with the list of tasks that were not reached; InvalidArgument for a filter that is
/// no device's name or matches none of the tasks.
void reset(const ClusterSpec& cluster, std::vector<std::string> containers = {}, std::vector<std::string> filters = {},
           ServerOptions options = {});

}  // namespace dflow::net
