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

/// The state that a TokenBarrier node keeps across steps: which replicas have brought their share of the current step,
/// and which replicas wait for the next step. The barrier is not open until a leader opens it. The leader that opened
/// it last collects the arrivals and moves it on. Leaders have numbers, so a leader that has been replaced does
/// nothing here any more.
///
/// A replica is present until it leaves or is given up, and is present again when it arrives or waits. The barrier
/// wants `aggregate` arrivals, or all replicas that are left if they are fewer. The leader remembers which replicas
/// have left, for a barrier that is started anew. Therefore a replica's leaving is done when the leader knows of it:
/// when the leader says in its next call that it has heard the answer, since an answer may be lost on its way. Until
/// then the steps that the replica has made may be lost, and it is to make them again. If another leader opens the
/// barrier, or the leader fails, a replica that is leaving is told Aborted and is present again. A replica whose
/// leaving is cancelled is present again too, unless it leaves for good. If two processes have one rank, the process
/// that began last counts: a call of the other one that waits or leaves is told AlreadyExists.
///
/// The leader and each replica hold a place for as long as their processes live: a call that is cancelled when its
/// client is lost. If the leader loses its place while it leads, the barrier is closed as by `Close::lost`. A replica
/// that has lost its place may come back; until then it is lost.
///
/// Before a leader leads, a replica that leaves waits for nobody. If the barrier's task is lost before that, nobody
/// knows of the leaving any more: the replica then counts as one whose process is lost, and `drop_missing` gives it up.
///
/// A step is being made from the moment that the leader is told the arrivals until it moves the barrier on. A replica
/// that has not arrived at this step waits for the next one, so it reads nothing of a step half made.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with.
/// Errors: InvalidArgument for a rank that is not in [0, replicas); AlreadyExists for a leader when another one has
/// opened the barrier since.
class TokenBarrierState final : public AwaitedResource {
 public:
  using WaitDone = UniqueFunction<void(Status, std::int64_t step)>;
  using LeaveDone = UniqueFunction<void(Status)>;
  using EndDone = UniqueFunction<void(Status)>;
  using HoldDone = UniqueFunction<void(Status)>;
  /// Ranks, ascending.
  struct Collected {
    std::vector<std::int32_t> arrived;  ///< empty if there are not enough
    std::vector<std::int32_t> left;     ///< all replicas that have left so far
  };
  using CollectDone = UniqueFunction<void(Status, Collected)>;

  TokenBarrierState(std::string name, std::int64_t replicas, std::int64_t aggregate);
  ~TokenBarrierState() override;

  std::int64_t replicas() const noexcept { return replicas_; }
  std::int64_t aggregate() const noexcept { return aggregate_; }
  std::string debug_string() const override;
  /// The replicas that have left, as far as the leader knows: bool [replicas]; all false if all have left.
  std::vector<AnyTensor> saved_state() const override;
  /// The replicas of `state` have left here too, if they have not been here.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// `leader` leads from now on. The current step is `step`, and all arrivals are forgotten. Replicas that wait are
  /// told the step, so that they do it again. A call that collects is told AlreadyExists. The replicas `left` have
  /// left, as far as the leader knows. Any other replica that is leaving is told Aborted.
  void open(std::int64_t step, std::int64_t leader = 0, std::span<const std::int32_t> left = {});
  /// Replica `rank` has brought its share of `local_step`. It counts if that is the current step.
  void arrive(std::int64_t rank, std::int64_t local_step);
  /// Tells the current step as soon as the barrier is open and its step is not `local_step`, at which the replica has
  /// arrived. If the replica has not arrived at it, or its arrival was forgotten, it is told as soon as that step is
  /// not being made: the replica is to do the step again. A `local_step` of -1 is for a replica that has no step yet;
  /// its call takes the place of the call that waits under its rank. Errors: why the barrier was closed; AlreadyExists
  /// if another call takes its place.
  void wait_async(std::int64_t rank, std::int64_t local_step, const CancellationToken& cancellation, WaitDone done);
  /// Tells which replicas have arrived, as soon as there are enough or a replica has left without the leader having
  /// been told. If the leader has heard the answer to its last call, it knows those of that answer; else it is told of
  /// them again. Errors: OutOfRange if all replicas have left; AlreadyExists if somebody else collects; Aborted if the
  /// barrier is not open.
  void collect_async(std::int64_t leader, const CancellationToken& cancellation, CollectDone done,
                     bool has_heard = true);
  /// The next step begins: replicas that wait for it go on.
  void advance(std::int64_t step, std::int64_t leader = 0);
  /// Replica `rank` brings no more, from now on. Its arrivals so far count, and a call that waits under its rank is
  /// told the current step at once. Calls `done` when the leader knows, when nobody has ever led, or when the training
  /// has ended. If the replica leaves `for_good`, it has left also if the call is cancelled before that, or Aborted.
  /// Errors: AlreadyExists if the replica waits or arrives again before that, in another process; Aborted when the
  /// leader has failed, or another one leads, before that.
  void leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done, bool for_good = false);
  /// For the chief, whose rank is `rank`, if it will not lead: the training of all ends before anybody has led. As long
  /// as the call waits, replicas that wait are told OutOfRange. Calls `done` when all others have been told or have
  /// left, or somebody else leads. If somebody leads, the chief leaves for good.
  void end_async(std::int64_t rank, const CancellationToken& cancellation, EndDone done);
  /// The replicas that are present and have not arrived at the current step, ascending.
  std::vector<std::int32_t> missing() const;
  /// Holds the place of the leader with number `leader`, or of a replica. The leader's call is done when the barrier is
  /// closed or somebody else opens it; a replica's call is done when it is cancelled, or when a new call holds its
  /// place. Errors: AlreadyExists if another leader leads, or another call holds the place; Aborted for a leader if the
  /// barrier is not open.
  void hold_leader_async(std::int64_t leader, const CancellationToken& cancellation, HoldDone done);
  void hold_replica_async(std::int64_t rank, const CancellationToken& cancellation, HoldDone done);
  enum class GiveUp : std::uint8_t {
    none,
    missing,  ///< if any replica has arrived
    lost,     ///< if no replica has arrived: of the missing replicas, those whose place nobody holds
  };
  /// Gives up missing replicas. Returns their ranks; for `none` those of all missing replicas.
  std::vector<std::int32_t> drop_missing(std::int64_t leader = 0, GiveUp which = GiveUp::missing);
  /// Why a barrier ends all waiting. After `done` and `stopped` all replicas are present again when somebody opens the
  /// barrier or waits anew.
  enum class Close : std::uint8_t {
    late,     ///< DeadlineExceeded that names the missing replicas
    done,     ///< OutOfRange: the last step has been done
    stopped,  ///< OutOfRange: the leader was told to stop, and nobody makes more steps
    lost,     ///< Aborted: the leader has failed
  };
  /// Ends all waiting until the barrier is opened, except for replicas that have no step yet.
  void close(Close why, std::int64_t leader = 0);

  std::int64_t step() const;
  std::int64_t num_present() const;

 private:
  struct State;
  void require_rank(std::int64_t rank) const;
  void require_leader(std::int64_t leader) const;

  const std::string name_;
  const std::int64_t replicas_, aggregate_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
