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

/// What to do about replicas that have not brought their gradients when the others have waited long enough.
enum class LateReplicas : std::uint8_t {
  drop,  ///< go on without them, until they come back
  fail,  ///< end the step of all with DeadlineExceeded that names them
};

struct SyncReplicasOptions {
  /// Gradients that make a step; 0: those of all replicas. `replicas - aggregate` of them are backups.
  std::int64_t aggregate = 0;
  std::int64_t replicas = 1;
  /// Which replica this process is, in [0, replicas), no two alike: `net::ClusterSpec::replica_rank`. Sums are in the
  /// order of ranks.
  std::int64_t rank = 0;
  /// How long a step waits for gradients; none: as long as it takes.
  std::optional<Duration> patience = {};
  LateReplicas late = LateReplicas::drop;
};

/// Reduces the gradients of `aggregate` replicas to their mean and applies them once, by the optimizer it is given;
/// later ones of the same step are dropped, so `replicas - aggregate` workers are backups (Chen et al. 2016,
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
/// Each replica builds this in a graph of its own. Gradients are gathered where their variable is, and one process, the
/// chief, leads: it has the sums applied and the next step begin. With the gradients of all, each of the same number of
/// examples, the losses are those of one process on all examples together, but for the order in which they are summed.
///
/// Thread safety: `minimize` builds, see Graph; the functions on a session may be called from any thread after it.
/// Errors: InvalidArgument unless 1 <= aggregate <= replicas and 0 <= rank < replicas; FailedPrecondition from what
/// needs a `minimize` before it, and from a second one.
class SyncReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  explicit SyncReplicas(O optimizer, const SyncReplicasOptions& options = {})
      : SyncReplicas(std::make_shared<const O>(std::move(optimizer)), options) {}
  SyncReplicas(std::shared_ptr<const Optimizer> optimizer, const SyncReplicasOptions& options);

  /// One step of this replica: brings its gradients and waits until the step has been made, which takes a leader.
  /// Errors of the run: DeadlineExceeded, naming replicas, where others are too late; OutOfRange if all others have
  /// ended meanwhile; Aborted when the leader has failed; AlreadyExists if another process begins as this
  /// replica while it waits. Where it computes then, the two go on and count as one.
  ///
  /// Without `options.global_step` it makes a variable "global_step".
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {});

  /// How many steps have been made.
  const Variable<std::int64_t>& global_step() const;
  /// The step that this replica's next gradients are for, where it computes: what a batch is chosen by that must be the
  /// same when a step is done again.
  const Output<std::int64_t>& local_step() const;

  /// For each replica, once per session, before it trains: blocks until somebody leads, or throws Cancelled when `stop`
  /// is requested.
  void begin(Session& session, const std::stop_token& stop = {}) const;
  /// For the chief alone: begins at the global step and makes steps as gradients come. Blocks until all replicas have
  /// left or `stop` is requested. Others that wait are told Aborted if it fails. Who has left it remembers, so that
  /// they are not waited for when the barrier's task is started anew. Calls `save`, if given, before those who have
  /// left are told that it is known. Errors: AlreadyExists when somebody else leads too, who goes on with those that
  /// wait.
  void lead(Session& session, const std::stop_token& stop = {}, const std::function<void()>& save = nullptr) const;
  /// This replica brings no more gradients: the others go on without it. It may come back by `begin`. Blocks until who
  /// leads, if anybody ever has, knows. Errors: AlreadyExists if another process begins as this replica before that;
  /// Aborted when who leads has failed before that, or another one leads: steps may have been lost, so it is to begin
  /// again.
  void leave(Session& session) const;

  /// The options of a Supervisor with `begin` and `lead` in them, and this global step where they name none.
  SupervisorOptions supervised(SupervisorOptions options) const;
  /// Calls `body(session, step)`, which is to run this replica's part of the step, until `steps` have been made, or
  /// `supervisor.should_stop()`. A body that returns false says that this replica has no more data: then it leaves, and
  /// the chief goes on to lead until all others have left.
  ///
  /// Steps that are lost with a task are made again, by all: where the chief saves, this returns when it has saved what
  /// they have made. So the model at the end is the one of an undisturbed run. Other replicas than the chief have left
  /// then, and may end; the chief, when it has used the model, calls `finish`.
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
  /// Leaves, if this replica has not; in the chief, which leads, it blocks until all others have left too. After a loop
  /// of one's own: steps that are lost meanwhile are not made again.
  void finish(Supervisor& supervisor) const;

 private:
  struct Built;
  const Built& built() const;
  void train_until(Supervisor& supervisor, std::int64_t steps,
                   const std::function<bool(Session&, std::int64_t)>& body) const;

  SharedPart<const Optimizer> optimizer_;
  SyncReplicasOptions options_;
  SharedPart<const Built> built_;
};

}  // namespace dflow::train
