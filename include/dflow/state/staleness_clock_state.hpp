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

/// What a StalenessClock node keeps across steps: how many steps each replica has finished, its clock, and who waits
/// because the slowest is too far behind (Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous
/// Parallel Parameter Server"). A replica may begin its step t when all that are present have finished step
/// t - staleness - 1.
///
/// A replica is present from `join` until it leaves or is given up, and `join` sets it where the slowest one is: so a
/// clock that was started anew holds back nobody for those who have left, and one that joins late nobody for itself.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with.
/// Errors: InvalidArgument for a rank that is not in [0, replicas). Aborted for a member that is present no more:
/// another one has joined under its rank, it was given up or has left, or another clock gave its number.
class StalenessClockState final : public AwaitedResource {
 public:
  using WaitDone = UniqueFunction<void(Status, std::int64_t step)>;
  using LeaveDone = UniqueFunction<void(Status)>;
  using WatchDone = UniqueFunction<void(Status, std::vector<std::int32_t> ranks)>;

  StalenessClockState(std::string name, std::int64_t replicas, std::int64_t staleness);
  ~StalenessClockState() override;

  std::int64_t replicas() const noexcept { return replicas_; }
  std::int64_t staleness() const noexcept { return staleness_; }
  std::string debug_string() const override;
  /// Who has left: bool [replicas]; nobody where all have.
  std::vector<AnyTensor> saved_state() const override;
  /// They have left here too, if they have not been here.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// A new member of that rank, which takes the place of the one before. Who waits as that one is told Aborted, and who
  /// is leaving as it AlreadyExists.
  std::int64_t join(std::int64_t rank);
  /// Tells the member's clock, the step that it does next, as soon as that may begin. Errors: DeadlineExceeded, naming
  /// them, when others were too late (`drop_late`).
  void wait_async(std::int64_t member, const CancellationToken& cancellation, WaitDone done);
  /// The member has finished its step.
  void tick(std::int64_t member);
  /// The replica is waited for no more, from now on. Calls `done` when who watches knows; at once if nobody has watched
  /// yet. Errors: AlreadyExists if another one joins under its rank before that.
  void leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done);
  /// Tells who has left or was given up, ascending, as soon as that is not `known`, ascending too, or is all replicas.
  /// Known ranks that this clock has never seen have left it too: who watches knew them from the clock before. Who
  /// watches once more, knowing nobody, when all have left and that was known, finds a clock that nobody has joined.
  void watch_async(std::vector<std::int32_t> known, const CancellationToken& cancellation, WatchDone done);
  /// Gives up the slowest if others wait for them or have left, or those who have never joined if all others are gone,
  /// and nothing has happened since the call that returned `since`; returns a number for the next one, -1 where nobody
  /// waits. If it `fails`, nobody is given up: it throws DeadlineExceeded that names them, and those who wait are told
  /// the same, until somebody joins.
  std::int64_t drop_late(std::int64_t since, bool fails);

  std::int64_t num_present() const;
  /// Of the slowest that is present; where nobody is, of the last one that was.
  std::int64_t least_clock() const;

 private:
  struct State;
  void require_rank(std::int64_t rank) const;
  Status not_present(std::int64_t member) const;

  const std::string name_;
  const std::int64_t replicas_, staleness_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
