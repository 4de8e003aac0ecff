#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/state/awaited_resource.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// The state that a StalenessClock node keeps across steps: each replica's clock, which counts the steps that it has
/// finished, and the replicas that wait because the slowest is too far behind (Ho et al. 2013, "More Effective
/// Distributed ML via a Stale Synchronous Parallel Parameter Server"). A replica may begin its step t when all present
/// replicas have finished step t - staleness - 1.
///
/// A replica is present from `join` until it leaves or is given up. `join` sets its clock to the clock of the slowest
/// replica. Therefore a clock that was started anew holds back nobody for replicas that have left, and a replica that
/// joins late holds back nobody.
///
/// The leader watches who has left, and holds a place as long as its process lives: a call that is cancelled when its
/// client is lost. A call that watches ends with it (Aborted). If the leader loses the place before its replica has
/// left, it is lost: waiting calls are told Aborted, since nobody looks after late replicas any more, and a replica
/// joins when somebody leads again.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with.
/// Errors: InvalidArgument for a rank that is not in [0, replicas). Aborted for a member that is present no more:
/// another one has joined under its rank, it was given up or has left, or another clock gave its number; also for a
/// member that waits when the leader is lost.
class StalenessClockState final : public AwaitedResource {
 public:
  using JoinDone = UniqueFunction<void(Status, std::int64_t member)>;
  using WaitDone = UniqueFunction<void(Status, std::int64_t step)>;
  using LeaveDone = UniqueFunction<void(Status)>;
  using WatchDone = UniqueFunction<void(Status, std::vector<std::int32_t> ranks)>;

  StalenessClockState(std::string name, std::int64_t replicas, std::int64_t staleness);
  ~StalenessClockState() override;

  std::int64_t replicas() const noexcept { return replicas_; }
  std::int64_t staleness() const noexcept { return staleness_; }
  std::string debug_string() const override;
  /// The replicas that have left: bool [replicas]; all false if all have left.
  std::vector<AnyTensor> saved_state() const override;
  /// The replicas of `state` have left here too, if they have not been here.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// A new member of that rank, which takes the place of the earlier member. A call that waits as the earlier member
  /// is told Aborted, and a call that leaves as it is told AlreadyExists.
  std::int64_t join(std::int64_t rank);
  /// The same, when there is a leader if it is lost.
  void join_async(std::int64_t rank, const CancellationToken& cancellation, JoinDone done);
  /// For a replica that has no model to train yet: tells -1 when somebody leads. Errors: OutOfRange if the chief was
  /// told to stop before it led.
  void await_leader_async(std::int64_t rank, const CancellationToken& cancellation, JoinDone done);
  /// `rank` leads from now on. The call is done when it is cancelled, or, with AlreadyExists, when another call holds
  /// the leader's place.
  void lead_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done);
  /// Tells the member's clock, the step that it does next, as soon as that step may begin. Errors: DeadlineExceeded,
  /// naming the late replicas, when others were too late (`drop_late`).
  void wait_async(std::int64_t member, const CancellationToken& cancellation, WaitDone done);
  /// The member has finished its step.
  void tick(std::int64_t member);
  /// The replica is waited for no more, from now on. Calls `done` when the watcher knows; at once if nobody leads, or
  /// as soon as the leader has lost its place. Errors: AlreadyExists if another one joins under its rank before that.
  void leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done);
  /// For the chief, whose rank is `rank`, if it will not lead: it has left, and replicas that wait for a leader without
  /// a model are told OutOfRange as long as the call waits. Calls `done` when all others have joined, have left or were
  /// told, or somebody leads. If somebody leads, it leaves.
  void end_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done);
  /// Tells the watcher which replicas have left or were given up, ascending, as soon as the list differs from `known`,
  /// ascending too, or holds all replicas. Known ranks that this clock has never seen have left it too: the watcher
  /// knew them from the clock before. If all have left and the watcher knew it, a watcher that calls once more with an
  /// empty `known` finds a clock that nobody has joined.
  void watch_async(std::vector<std::int32_t> known, const CancellationToken& cancellation, WatchDone done);
  /// Gives up the slowest replicas if others wait for them or have left. If all other replicas are gone, gives up the
  /// replicas that have never joined. Does so only if nothing has happened since the call that returned `since`.
  /// Returns a number for the next call, -1 if nobody waits. If it `fails`, nobody is given up: the call throws
  /// DeadlineExceeded that names the replicas, and waiting calls are told the same, until a replica joins. If it
  /// `only_names`, it throws the same, and nobody is told.
  std::int64_t drop_late(std::int64_t since, bool fails, bool only_names = false);

  std::int64_t num_present() const;
  /// The clock of the slowest present replica; if none is present, of the last one that was.
  std::int64_t least_clock() const;

 private:
  struct State;
  void begin_async(std::int64_t rank, bool joins, const CancellationToken& cancellation, JoinDone done);
  void require_rank(std::int64_t rank) const;
  Status not_present(std::int64_t member) const;

  const std::string name_;
  const std::int64_t replicas_, staleness_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
