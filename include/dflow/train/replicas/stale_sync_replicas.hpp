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

/// A staleness that holds nobody back: each replica goes at its own pace.
inline constexpr std::int64_t unbounded_staleness = std::numeric_limits<std::int64_t>::max();

struct StaleSyncReplicasOptions {
  /// How many steps a replica may be ahead of the slowest one: 0 has them go in step.
  std::int64_t staleness = 0;
  std::int64_t replicas = 1;
  /// Which replica this process is, in [0, replicas), no two alike: `net::ClusterSpec::replica_rank`.
  std::int64_t rank = 0;
  /// How long replicas wait for the slowest, in which nobody finishes a step; none: as long as it takes.
  std::optional<Duration> patience = {};
  LateReplicas late = LateReplicas::drop;
};

/// Trains stale synchronously, with bounded staleness (Ho et al. 2013): gradients are applied as they come, where the
/// variables live, by the optimizer it is given, and a replica may begin its step t when the slowest has finished step
/// t - staleness - 1. So what a step reads has all updates up to that one, and none waits for all others in each step.
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
/// Each replica builds this in a graph of its own. It is one of them from `begin` until it leaves or is given up, and
/// begins where the slowest is: who comes late, or again, need not catch up. Of two processes of one rank the one that
/// began last counts. What one that counts no more has computed is not applied, and its step is Aborted: by a
/// Supervisor it begins again.
///
/// Thread safety: `minimize` builds, see Graph; the functions on a session may be called from any thread after it.
/// Errors: InvalidArgument unless 0 <= staleness and 0 <= rank < replicas; FailedPrecondition from what needs a
/// `minimize` before it, and from a second one.
class StaleSyncReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  explicit StaleSyncReplicas(O optimizer, const StaleSyncReplicasOptions& options = {})
      : StaleSyncReplicas(std::make_shared<const O>(std::move(optimizer)), options) {}
  StaleSyncReplicas(std::shared_ptr<const Optimizer> optimizer, const StaleSyncReplicasOptions& options);

  /// One step of this replica: has its gradients applied, and waits until its next step may begin. Errors of the run:
  /// FailedPrecondition before `begin`; Aborted when it counts no more; DeadlineExceeded, naming replicas, where others
  /// are too late.
  ///
  /// Without `options.global_step` it makes a variable "global_step".
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {});

  /// How many steps have been made by all replicas together.
  const Variable<std::int64_t>& global_step() const;

  /// For each replica, once per session, before it trains.
  void begin(Session& session, const std::stop_token& stop = {}) const;
  /// For the chief alone: gives up replicas that are too late, or has those who wait told who they are. Blocks until
  /// all replicas have left or were given up, or `stop` is requested. Errors: DeadlineExceeded that names those who are
  /// too late, if that is what is done about them. Calls `save`, if given, before those who have left are told that it
  /// is known.
  void lead(Session& session, const std::stop_token& stop = {}, const std::function<void()>& save = nullptr) const;
  /// This replica trains no more: the others go on without it. It may come back by `begin`. Where somebody leads it
  /// blocks until that one knows, also when the clock's task is started anew meanwhile. Errors: AlreadyExists if
  /// another process begins as this replica before that.
  void leave(Session& session) const;

  /// The options of a Supervisor with `begin` and `lead` in them, and this global step where they name none.
  SupervisorOptions supervised(SupervisorOptions options) const;
  /// Leaves; in the chief, which leads, it blocks until all others have left too.
  void finish(Supervisor& supervisor) const;

 private:
  struct Built;
  const Built& built() const;

  SharedPart<const Optimizer> optimizer_;
  StaleSyncReplicasOptions options_;
  SharedPart<const Built> built_;
};

}  // namespace dflow::train
