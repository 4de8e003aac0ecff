#pragma once

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
class GraphStore;
class OpTable;
struct SessionOptions;

/// What one device of another task runs of a step.
struct RemotePartition {
  std::string device;
  StepGraph graph;
};

/// The share of a compiled step that one other task runs; it forgets it when this goes.
///
/// Thread safety: safe.
class RemoteShare {
 public:
  RemoteShare() = default;
  RemoteShare(const RemoteShare&) = delete;
  RemoteShare& operator=(const RemoteShare&) = delete;
  virtual ~RemoteShare();

  /// One run of it. Whatever is wrong with the share, also that it could not be brought there, is the part's error.
  virtual std::shared_ptr<StepPart> make_part() = 0;
  /// The error with what is known of its node here: the line of the program.
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
  /// The tasks forget what they keep for the session; variables and other resources stay.
  virtual ~RemoteTasks();

  /// Of the other tasks, in order of preference.
  virtual std::span<const DeviceInfo> devices() const noexcept = 0;
  /// A share that its first run brings there: this sends nothing. `partitions` are all of the step that devices of
  /// `task` run.
  virtual std::shared_ptr<RemoteShare> share(const std::string& task, std::vector<RemotePartition> partitions) = 0;
  /// Where the tensors of one step of the session meet that has parts in other tasks.
  virtual std::shared_ptr<Rendezvous> begin_step(std::uint64_t id) = 0;
};

/// A run of a step that a master in another process keeps, which is fed call by call; what it makes comes unasked.
///
/// Thread safety: safe.
class RemotePartialRun : public StepPart {
 public:
  /// What is told of it, from any thread, until it is done.
  struct Events {
    /// Once: the master has begun the step, and it may be fed.
    UniqueFunction<void()> begun;
    /// For each fetch once, as soon as it has been made, and before the part is done without an error. Does not throw.
    UniqueFunction<void(std::size_t fetch, AnyTensor)> made;
  };

  ~RemotePartialRun() override;

  /// Sends a feed, each once, and does not wait. The caller holds the step, and writes the tensor no more.
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

  /// One run of it, as the only part of its step. `results`, one for each fetch, are set before the part is done, and
  /// left alone after that. Whatever is wrong with the session, also that it could not be brought there, is the part's
  /// error.
  virtual std::shared_ptr<StepPart> make_part(std::vector<AnyTensor> feeds, std::span<AnyTensor> results) = 0;
  /// One run of it as a partial one, the only part of its step, too. `needed_feeds` says for each fetch which feeds
  /// must be there before it can be made.
  virtual std::shared_ptr<RemotePartialRun> make_partial_run(std::vector<std::vector<bool>> needed_feeds,
                                                             RemotePartialRun::Events events) = 0;
  /// The error with what is known of its node here: the line of the program.
  virtual Status explain(const Status& status) const = 0;
};

/// A session that a master in another process keeps: it prunes, places and runs what is named here.
///
/// Thread safety: safe.
class RemoteSession {
 public:
  /// What is fed, fetched and run: "node" or "node:1", and names of nodes.
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

/// Where a session's steps run, beyond its own process: what `SessionOptions::target` takes. `net::Server::target()`
/// gives one whose sessions are masters themselves, `net::remote_master()` one whose sessions are kept by another
/// task's.
///
/// Thread safety: safe.
class SessionTarget {
 public:
  SessionTarget() = default;
  SessionTarget(const SessionTarget&) = delete;
  SessionTarget& operator=(const SessionTarget&) = delete;
  virtual ~SessionTarget();

  /// The devices of this process that belong to the cluster; none where it is a client only.
  virtual std::vector<std::shared_ptr<Device>> local_devices() const = 0;
  /// The task, or the name as of one, by which the others know this process: "/job:worker/replica:0/task:1".
  virtual std::string task() const = 0;
  /// What stands in the keys of tensors that the client sends.
  virtual std::uint64_t incarnation() const noexcept = 0;

  /// Looks for the other tasks, and blocks until all have been found. Errors: Unavailable when they have not in time,
  /// with a list of those that are missing, among them who has another table of ops; InvalidArgument if the target
  /// itself has another one than `ops`.
  virtual std::unique_ptr<RemoteTasks> open_tasks(const OpTable& ops) = 0;
  /// Instead of `open_tasks`, where a master in another process is to keep the session; null, as by default, where this
  /// process does. Blocks until the master has the graph and has found the other tasks. Errors: as of `open_tasks`;
  /// InvalidArgument for what the master's ops cannot make a graph of.
  virtual std::unique_ptr<RemoteSession> open_session(const GraphStore& graph, const SessionOptions& options);
};

}  // namespace dflow
