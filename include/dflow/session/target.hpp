#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/core/rendezvous.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/step_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {

class Device;
class FileSystem;
class GraphStore;
struct SessionOptions;

/// The part of a step that one device of another task runs.
struct RemotePartition {
  std::string device;
  StepGraph graph;
};

/// The share of a compiled step that one other task runs; the task forgets the share when this object is destroyed.
///
/// Thread safety: safe.
class RemoteShare {
 public:
  RemoteShare() = default;
  RemoteShare(const RemoteShare&) = delete;
  RemoteShare& operator=(const RemoteShare&) = delete;
  virtual ~RemoteShare();

  /// One run of the share. Any error of the share, also a failure to bring it to the task, is the part's error.
  virtual std::shared_ptr<StepPart> make_part() = 0;
  /// The error with the known facts of its node here: the line of the program.
  virtual Status explain(const Status& status) const = 0;
};

/// The other tasks of a cluster as one session has them.
///
/// Thread safety: safe.
class RemoteTasks {
 public:
  RemoteTasks() = default;
  RemoteTasks(const RemoteTasks&) = delete;
  RemoteTasks& operator=(const RemoteTasks&) = delete;
  /// The tasks forget the session's data; variables and other resources stay.
  virtual ~RemoteTasks();

  /// The devices of the other tasks, in order of preference.
  virtual std::span<const DeviceInfo> devices() const noexcept = 0;
  /// A share that its first run brings to the task: this call sends nothing. `partitions` are all partitions of the
  /// step that devices of `task` run.
  virtual std::shared_ptr<RemoteShare> share(const std::string& task, std::vector<RemotePartition> partitions) = 0;
  /// The rendezvous for the tensors of one step of the session that has parts in other tasks.
  virtual std::shared_ptr<Rendezvous> begin_step(std::uint64_t id) = 0;
};

/// A run of a step that a master in another process keeps. It is fed call by call; its fetches come unasked.
///
/// Thread safety: safe.
class RemotePartialRun : public StepPart {
 public:
  /// The events that the run reports, from any thread, until it is done.
  struct Events {
    /// Called once: the master has begun the step, and it may be fed.
    UniqueFunction<void()> begun;
    /// Called once for each fetch, as soon as it has been made, and before the part is done without an error. Does not
    /// throw.
    UniqueFunction<void(std::size_t fetch, AnyTensor)> made;
  };

  ~RemotePartialRun() override;

  /// Sends a feed, each once, and does not wait. The caller holds the step, and does not write the tensor any more.
  virtual void feed(std::size_t feed, AnyTensor value) = 0;
};

/// A step of a session that a master in another process keeps: feeds go there, fetches come back.
///
/// Thread safety: safe.
class RemoteStep {
 public:
  RemoteStep() = default;
  RemoteStep(const RemoteStep&) = delete;
  RemoteStep& operator=(const RemoteStep&) = delete;
  virtual ~RemoteStep();

  /// One run of the step, as the only part of its step. `results`, one for each fetch, are set before the part is
  /// done, and left alone after that. Any error of the session, also a failure to bring it to the master, is the
  /// part's error.
  virtual std::shared_ptr<StepPart> make_part(std::vector<AnyTensor> feeds, std::span<AnyTensor> results) = 0;
  /// One run of the step as a partial run, also the only part of its step. `needed_feeds` says for each fetch which
  /// feeds must be there before it can be made.
  virtual std::shared_ptr<RemotePartialRun> make_partial_run(std::vector<std::vector<bool>> needed_feeds,
                                                             RemotePartialRun::Events events) = 0;
  /// The error with the known facts of its node here: the line of the program.
  virtual Status explain(const Status& status) const = 0;
};

/// A session that a master in another process keeps: it prunes, places and runs the nodes that are named here.
///
/// Thread safety: safe.
class RemoteSession {
 public:
  /// The feeds, fetches and targets: "node" or "node:1", and names of nodes.
  struct StepNames {
    std::vector<std::string> feeds;
    std::vector<std::string> fetches;
    std::vector<DType> fetched_types;
    std::vector<std::string> targets;
  };

  RemoteSession() = default;
  RemoteSession(const RemoteSession&) = delete;
  RemoteSession& operator=(const RemoteSession&) = delete;
  /// The master forgets the session when its steps are gone, too.
  virtual ~RemoteSession();

  /// The step on the graph as it is now; the graph may be gone later. Does not wait.
  virtual std::shared_ptr<RemoteStep> step(const GraphStore& graph, StepNames names) = 0;
};

/// Where a session's steps run, beyond its own process: the value of `SessionOptions::target`. `net::Server::target()`
/// gives a target whose sessions are masters themselves. `net::remote_master()` gives a target whose sessions are kept
/// by another task.
///
/// Thread safety: safe.
class SessionTarget {
 public:
  SessionTarget() = default;
  SessionTarget(const SessionTarget&) = delete;
  SessionTarget& operator=(const SessionTarget&) = delete;
  virtual ~SessionTarget();

  /// The devices of this process that belong to the cluster; none if the process is a client only.
  virtual std::vector<std::shared_ptr<Device>> local_devices() const = 0;
  /// The name by which the other tasks know this process: its task, or a name of the same form,
  /// "/job:worker/replica:0/task:1".
  virtual std::string task() const = 0;
  /// The number in the keys of tensors that the client sends.
  virtual std::uint64_t incarnation() const noexcept = 0;

  /// Looks for the other tasks, and blocks until all have been found. Errors: Unavailable if some are not found in
  /// time, with a list of the missing tasks, which includes tasks with another table of ops. InvalidArgument if the
  /// target itself has a table other than `options.ops`. Cancelled when `options.stop` is requested.
  virtual std::unique_ptr<RemoteTasks> open_tasks(const SessionOptions& options) = 0;
  /// Used instead of `open_tasks` if a master in another process is to keep the session. Null, as by default, if this
  /// process keeps it. Blocks until the master has the graph and has found the other tasks. Errors: as of
  /// `open_tasks`; InvalidArgument if the master's ops cannot make a graph of `graph`.
  virtual std::unique_ptr<RemoteSession> open_session(const GraphStore& graph, const SessionOptions& options);
  /// Called once for each step of a session of this target that has begun, when it ends. By default it does nothing.
  virtual void note_step(Code code) noexcept;
  /// The files of the cluster's tasks, as this process sees them: for savers. Null, as by default: the machine's.
  virtual std::shared_ptr<FileSystem> files() const { return nullptr; }
};

}  // namespace dflow
