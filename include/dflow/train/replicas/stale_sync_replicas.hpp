#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/base/shared_part.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/optimizer.hpp>
#include <dflow/train/replicas/supervisor.hpp>
#include <dflow/train/replicas/sync_replicas.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace dflow::train {

/// A staleness without a limit: each replica goes at its own pace.
inline constexpr std::int64_t unbounded_staleness = std::numeric_limits<std::int64_t>::max();

struct StaleSyncReplicasOptions {
  /// How many steps a replica may be ahead of the slowest replica; 0: all replicas go in step.
  std::int64_t staleness = 0;
  std::int64_t replicas = 1;
  /// Rank of this process, in [0, replicas), different for each replica: `net::ClusterSpec::replica_rank`.
  std::int64_t rank = 0;
  /// How long replicas wait for the slowest replica while no replica finishes a step; none: as long as it takes.
  std::optional<Duration> patience = {};
  LateReplicas late = LateReplicas::drop;
};

/// Trains stale synchronously, with bounded staleness (Ho et al. 2013). The given optimizer applies gradients as they
/// come, where the variables live. A replica may begin its step t when the slowest replica has finished its step
/// t - staleness - 1. A step therefore reads all updates up to that step, and no replica waits for all others in each
/// step.
///
/// ```cpp
/// df::train::StaleSyncReplicas stale(df::train::Adam(1e-3f),
///                                    {.staleness = 4,
///                                     .replicas = cluster.num_replicas(),
///                                     .rank = cluster.replica_rank()});
/// auto train = stale.minimize(loss);
/// df::train::Supervisor supervisor(graph, stale.supervised({.session = {.target = server.target()}}));
/// for (const auto& [x, y] : batches)
///   supervisor.run([&](df::Session& session) { session.run({{images, x}, {labels, y}}, train); });
/// stale.finish(supervisor);
/// ```
/// Each replica builds this in a graph of its own. A process is a replica from `begin` until it leaves or is given
/// up. It begins at the step of the slowest replica, so a late or returning replica need not catch up. If two
/// processes have one rank, the process that began last counts. If a process does not count any more, its step ends
/// with Aborted and its gradients are not applied. Under a Supervisor it begins again.
///
/// The chief holds a place at the clock as long as its process and all tasks with variables live. If it loses the place
/// before it has left, the steps of replicas that wait for others fail with Aborted, and replicas begin again when a
/// chief leads: they wait for that for `ready_timeout`. If the chief is told to stop before it leads, replicas that
/// wait for the model get OutOfRange from `Supervisor::run`: nobody trains.
///
/// Thread safety: `minimize` builds, see Graph; the functions on a session may be called from any thread after it.
/// Errors: InvalidArgument unless 0 <= staleness and 0 <= rank < replicas; FailedPrecondition from functions that
/// need a `minimize` first, and from a second `minimize`.
class StaleSyncReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  explicit StaleSyncReplicas(O optimizer, const StaleSyncReplicasOptions& options = {})
      : StaleSyncReplicas(std::make_shared<const O>(std::move(optimizer)), options) {}
  StaleSyncReplicas(std::shared_ptr<const Optimizer> optimizer, const StaleSyncReplicasOptions& options);

  /// One step of this replica: applies its gradients, and waits until its next step may begin. Errors of the run:
  /// FailedPrecondition before `begin`; Aborted when this process does not count any more; DeadlineExceeded, naming
  /// replicas, if others are too late.
  ///
  /// Without `options.global_step` it makes a variable "global_step".
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {});

  /// Number of steps of all replicas together.
  const Variable<std::int64_t>& global_step() const;

  /// Every replica calls this once per session, before it trains. If the leader is lost, blocks until another one
  /// leads.
  void begin(Session& session, const std::stop_token& stop = {}) const;
  /// For the chief alone: gives up late replicas (`LateReplicas::drop`), or ends the steps of waiting replicas with
  /// DeadlineExceeded, naming the late ones (`LateReplicas::fail`). Blocks until all replicas have left or were given
  /// up, or `stop` is requested; waiting replicas then get Aborted. If `save` is given, calls it before a replica that
  /// has left is told that the leader knows. Errors: DeadlineExceeded, naming the late replicas, with
  /// `LateReplicas::fail`.
  void lead(Session& session, const std::stop_token& stop = {}, const std::function<void()>& save = nullptr) const;
  /// The same for a Supervisor. Says which replicas the others have waited for.
  void lead(const Leading& with) const;
  /// Ends the training of this replica; the others go on without it. It may come back by `begin`. If there is a
  /// leader, blocks until the leader knows, also if the clock's task is started anew meanwhile, or has lost its place.
  /// Errors: AlreadyExists if another process begins as this replica before that. DeadlineExceeded and Cancelled as the
  /// options say.
  void leave(Session& session, const RunOptions& options = {}) const;

  /// The options of a Supervisor with this `begin`, `lead` and `leave`; with this global step if the options have none.
  /// If this replica is told to stop while a body runs, it leaves, also as the chief, which saves before. If the body
  /// waits for others, the wait ends, and `Supervisor::run` throws Cancelled.
  SupervisorOptions supervised(SupervisorOptions options) const;
  /// Leaves. In the chief, which leads, blocks until all others have left too. If this replica was told to stop, blocks
  /// for `patience` (30 s without one) at most; a chief saves the steps that were made so far, and the others go on.
  void finish(Supervisor& supervisor) const;

 private:
  struct Built;
  const Built& built() const;

  SharedPart<const Optimizer> optimizer_;
  StaleSyncReplicasOptions options_;
  SharedPart<const Built> built_;
};

}  // namespace dflow::train
