#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/base/shared_part.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/optimizer.hpp>
#include <dflow/train/replicas/supervisor.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace dflow::train {

/// How the leader treats replicas that have not brought gradients when the others have waited long enough.
enum class LateReplicas : std::uint8_t {
  drop,  ///< go on without them, until they come back
  fail,  ///< end the step of all with DeadlineExceeded that names them
};

struct SyncReplicasOptions {
  /// Number of gradients that make a step; 0: one of each replica. `replicas - aggregate` of the replicas are
  /// backups.
  std::int64_t aggregate = 0;
  std::int64_t replicas = 1;
  /// Rank of this process, in [0, replicas), different for each replica: `net::ClusterSpec::replica_rank`. Sums are
  /// in the order of ranks.
  std::int64_t rank = 0;
  /// How long a step waits for gradients; none: as long as it takes.
  std::optional<Duration> patience = {};
  LateReplicas late = LateReplicas::drop;
  /// How long, at the end, the chief waits for replicas whose processes are lost, and a replica that was told to stop
  /// waits for the chief's answer. A chief that was told to stop before it leads waits so long for tasks, and to tell
  /// the others. All wait for `patience` instead if that is given.
  Duration end_patience = std::chrono::seconds(30);
};

/// Reduces the gradients of `aggregate` replicas to their mean, and the given optimizer applies the mean once. Later
/// gradients of the same step are dropped, so `replicas - aggregate` workers are backups (Chen et al. 2016,
/// arXiv:1604.00981). A step takes the gradients of the same replicas for all variables.
///
/// ```cpp
/// df::train::SyncReplicas sync(df::train::Adam(1e-3f), {.aggregate = cluster.num_replicas() - 1,  // one is a backup
///                                                       .replicas = cluster.num_replicas(),
///                                                       .rank = cluster.replica_rank()});
/// auto train = sync.minimize(loss);
/// df::train::Supervisor supervisor(graph, sync.supervised({.session = {.target = server.target()}}));
/// sync.train(supervisor, num_steps, [&](df::Session& session, std::int64_t step) {
///   const auto [x, y] = batch(step);
///   session.run({{images, x}, {labels, y}}, train);
/// });
/// ```
/// Each replica builds this in a graph of its own. Gradients are gathered on the devices of their variables. One
/// process, the chief, leads: it applies the sums and begins the next step. If all replicas take part, each with
/// equally many examples, the losses equal the losses of one process on all examples together, except for the order
/// of sums.
///
/// Beside gradients, a replica may move averages with each step: operations of `update_operations(loss)` that add to a
/// float variable or subtract from it, as batch normalisation's do. Their changes are gathered as gradients are: the
/// leader applies the mean of the replicas whose gradients count. All other update operations run in each replica, in
/// the order of arrival.
///
/// The chief and each replica hold a place at the barrier as long as their processes live. If the chief's process is
/// lost, the steps of waiting replicas fail with Aborted. If the chief is told to stop, it lets all others end: their
/// steps fail with OutOfRange, and `train` returns.
///
/// Thread safety: `minimize` builds, see Graph; the functions on a session may be called from any thread after it.
/// Errors: InvalidArgument unless 1 <= aggregate <= replicas and 0 <= rank < replicas; FailedPrecondition from
/// functions that need a `minimize` first, and from a second `minimize`.
class SyncReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  explicit SyncReplicas(O optimizer, const SyncReplicasOptions& options = {})
      : SyncReplicas(std::make_shared<const O>(std::move(optimizer)), options) {}
  SyncReplicas(std::shared_ptr<const Optimizer> optimizer, const SyncReplicasOptions& options);

  /// One step of this replica: brings its gradients and waits until the step has been made, which needs a leader.
  /// Errors of the run: DeadlineExceeded, naming replicas, if others are too late; OutOfRange if the training has ended
  /// meanwhile. Also Aborted when the leader has failed or is lost, and AlreadyExists if another process begins as this
  /// replica while it waits. If this replica computes at that time, both processes go on and count as one.
  ///
  /// Without `options.global_step` it makes a variable "global_step".
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {});

  /// Number of steps that have been made.
  const Variable<std::int64_t>& global_step() const;
  /// The step of this replica's next gradients, on the device where it computes. Choose a batch by this step if a
  /// repeated step must have the same batch.
  const Output<std::int64_t>& local_step() const;

  /// Every replica calls this once per session, before it trains. Blocks until there is a leader; throws Cancelled
  /// when `stop` is requested.
  void begin(Session& session, const std::stop_token& stop = {}) const;
  /// For the chief alone: begins at the global step and makes steps as gradients come. Blocks until all replicas have
  /// left or `stop` is requested. If `lead` fails or is stopped, waiting replicas get Aborted. It remembers the
  /// replicas that have left, so that nobody waits for them when the barrier's task is started anew. If `save` is
  /// given, calls it before a replica that has left is told that the leader knows. Errors: AlreadyExists when a second
  /// leader begins; the second leader goes on with the waiting replicas.
  void lead(Session& session, const std::stop_token& stop = {}, const std::function<void()>& save = nullptr) const;
  /// The same for a Supervisor. If the training is to end, waiting replicas get OutOfRange. Says which replicas a step
  /// has waited for.
  void lead(const Leading& with) const;
  /// This replica brings no more gradients: the others go on without it. It may come back by `begin`. Blocks until
  /// the leader knows, if there ever was a leader. Errors: AlreadyExists if another process begins as this replica
  /// before that. Aborted when the leader fails before that, or another process leads: steps may have been lost, so
  /// this replica should begin again. DeadlineExceeded and Cancelled as the options say.
  void leave(Session& session, const RunOptions& options = {}) const;

  /// The options of a Supervisor with this `begin`, `lead` and `leave`; with this global step if the options have none.
  SupervisorOptions supervised(SupervisorOptions options) const;
  /// Calls `body(session, step)`, which runs this replica's part of the step, until `steps` have been made, or
  /// `supervisor.should_stop()`. A body returns false if this replica has no more data: the replica then leaves, and
  /// a chief goes on to lead until all others have left.
  ///
  /// If this replica is told to stop, it leaves, also before it has begun, and a step that it waits for ends; the
  /// others go on. That takes `end_patience` at most. If the chief is told to stop, it saves all steps that were made,
  /// and `train` returns in all replicas that have begun. If the chief is told to stop before it leads, `train` returns
  /// in all replicas that come before the chief has ended. Later replicas wait for another chief for `ready_timeout`.
  ///
  /// A replica that leaves before anybody has led waits for nobody. If the parameter server is lost before a chief
  /// leads, the replica counts as lost: the others wait for it for `patience`, and a line names it.
  ///
  /// All replicas make steps again that were lost with a task. If the chief saves, this returns when it has saved the
  /// steps, so the final model is the model of an undisturbed run. Replicas other than the chief have then left, and
  /// may end. The chief calls `finish` when it has used the model.
  template <class Body>
  void train(Supervisor& supervisor, std::int64_t steps, Body&& body) const {
    train_until(supervisor, steps, [&](Session& session, std::int64_t step) {
      if constexpr (std::is_void_v<decltype(body(session, step))>) {
        body(session, step);
        return true;
      } else {
        return static_cast<bool>(body(session, step));
      }
    });
  }
  /// Leaves, if this replica has not left; also if it was told to stop before it has begun. In the chief, which leads,
  /// blocks until all others have left too, or are lost for `end_patience`. For a loop of your own: steps that are lost
  /// meanwhile are not made again.
  void finish(Supervisor& supervisor) const;

 private:
  struct Built;
  const Built& built() const;
  void train_until(Supervisor& supervisor, std::int64_t steps,
                   const std::function<bool(Session&, std::int64_t)>& body) const;
  void make_steps(Supervisor& supervisor, std::int64_t steps,
                  const std::function<bool(Session&, std::int64_t)>& body) const;
  void end(Session& session, const RunOptions& options, const Operation& how) const;
  void stop_early(Supervisor& supervisor) const;
  void tell_missing(const Leading& with, const Feed& leader) const;

  SharedPart<const Optimizer> optimizer_;
  SyncReplicasOptions options_;
  SharedPart<const Built> built_;
};

}  // namespace dflow::train
