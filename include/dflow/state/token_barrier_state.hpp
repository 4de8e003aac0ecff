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

/// What a TokenBarrier node keeps across steps: which replicas have brought what the current step wants, and who waits
/// for the next one. It is not open until somebody leads: the one who opened it last collects the arrivals and moves it
/// on. Leaders have numbers, so that one whose place another has taken does nothing here any more.
///
/// A replica is present until it leaves or is given up, and again when it arrives or waits. So many arrivals are
/// wanted: `aggregate`, or all that are left where those are fewer. Who leads remembers who has left, for a barrier
/// that is started anew; so a replica's leaving is done when the leader knows. Until then the steps it has made may be
/// lost, and it is to make them again: who is leaving when another leader opens the barrier, or the leader fails, is
/// told Aborted, and is present again, as who is cancelled then. Of two processes of one rank the one that began last
/// counts: who waits or is leaving as that replica is told AlreadyExists.
///
/// From the moment that the leader is told who has arrived until it moves the barrier on, a step is being made: who has
/// not arrived at it waits for the next one, so that it reads nothing of a step half made.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with.
/// Errors: InvalidArgument for a rank that is not in [0, replicas); AlreadyExists for a leader when another one has
/// opened the barrier since.
class TokenBarrierState final : public AwaitedResource {
 public:
  using WaitDone = UniqueFunction<void(Status, std::int64_t step)>;
  using LeaveDone = UniqueFunction<void(Status)>;
  /// Ranks, ascending.
  struct Collected {
    std::vector<std::int32_t> arrived;  ///< empty where there are not enough
    std::vector<std::int32_t> left;     ///< all who have left so far
  };
  using CollectDone = UniqueFunction<void(Status, Collected)>;

  TokenBarrierState(std::string name, std::int64_t replicas, std::int64_t aggregate);
  ~TokenBarrierState() override;

  std::int64_t replicas() const noexcept { return replicas_; }
  std::int64_t aggregate() const noexcept { return aggregate_; }
  std::string debug_string() const override;
  /// Who has left, as the leader knows: bool [replicas]; nobody where all have.
  std::vector<AnyTensor> saved_state() const override;
  /// They have left here too, if they have not been here.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// `leader` leads from now on. The current step is `step`, and all arrivals are forgotten. Those who wait are told
  /// the step, so that they do it again. Who collects is told AlreadyExists. `left` have left, as far as the leader
  /// knows; who else is leaving is told Aborted.
  void open(std::int64_t step, std::int64_t leader = 0, std::span<const std::int32_t> left = {});
  /// Replica `rank` has brought what it has for `local_step`. It counts if that is the current step.
  void arrive(std::int64_t rank, std::int64_t local_step);
  /// Tells the current step as soon as it is open and another one than `local_step`, at which the replica has arrived;
  /// if it has not, or no more, as soon as that step is not being made: it is to do the step again. -1 is for a replica
  /// that has no step yet, and takes the place of the one that waits under its rank. Errors: why it was closed;
  /// AlreadyExists if another one takes its place.
  void wait_async(std::int64_t rank, std::int64_t local_step, const CancellationToken& cancellation, WaitDone done);
  /// Tells who has arrived as soon as there are enough, or somebody has left of whom the leader was not told. What it
  /// was told before it knows now. Errors: OutOfRange if all replicas have left; AlreadyExists if somebody else
  /// collects; Aborted if it is not open.
  void collect_async(std::int64_t leader, const CancellationToken& cancellation, CollectDone done);
  /// The next step begins: those who wait for it go on.
  void advance(std::int64_t step, std::int64_t leader = 0);
  /// Replica `rank` brings no more, from now on. What it has brought counts. Calls `done` when the leader knows, or
  /// when nobody has ever led, or the last step has been done. Errors: AlreadyExists if the replica waits or arrives
  /// again before that, in another process; Aborted when who led has failed, or another one leads, before that.
  void leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done);
  /// Those who are present and have not arrived at the current step, ascending.
  std::vector<std::int32_t> missing() const;
  /// Gives up those who are missing, if anybody has arrived; who they were.
  std::vector<std::int32_t> drop_missing(std::int64_t leader = 0);
  /// Why a barrier ends all waiting.
  enum class Close : std::uint8_t {
    late,  ///< DeadlineExceeded that names those who are missing
    done,  ///< OutOfRange: the last step has been done. All are present again when somebody opens it or waits anew.
    lost,  ///< Aborted: who led has failed
  };
  /// Nobody waits any more, until it is opened, but for those who have no step yet.
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
