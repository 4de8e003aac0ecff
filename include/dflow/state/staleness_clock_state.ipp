#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/state/replica_ranks.hpp>
#include <dflow/state/staleness_clock_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <utility>

namespace dflow {

struct StalenessClockState::State {
  enum class Standing : std::uint8_t { unknown, present, left, given_up };
  struct Replica {
    Standing standing = Standing::unknown;
    std::int64_t member = 0;
    std::int64_t clock = 0;
  };
  struct Waiter {
    std::int64_t member;
    std::int64_t clock;
    WaitDone done;
  };
  struct Leaver {
    std::int64_t rank;
    LeaveDone done;
  };
  struct Watcher {
    WatchDone done;
  };
  struct Beginner {
    std::int64_t rank;
    bool joins;  ///< else it only waits for a leader
    JoinDone done;
  };
  struct Leader {
    std::int64_t rank;
    LeaveDone done;
  };
  /// The chief, which does not lead.
  struct Ender {
    std::int64_t rank;
    LeaveDone done;
  };
  /// The calls to complete when the lock is released.
  struct Due {
    std::vector<Waiter> waiters, others;
    std::vector<Leaver> leavers;
    std::vector<Watcher> watchers;
    std::vector<Beginner> told;
    std::vector<Leader> leaders;
    std::vector<Ender> enders;
    std::vector<std::int32_t> gone;
    Status others_status, leavers_status, watchers_status, told_status, leaders_status;

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    ~Due() {
      for (Waiter& waiter : waiters) waiter.done(Status(), waiter.clock);
      for (Waiter& waiter : others) waiter.done(others_status, waiter.clock);
      for (Leaver& leaver : leavers) leaver.done(leavers_status);
      for (Watcher& watcher : watchers) watcher.done(watchers_status, gone);
      for (Beginner& beginner : told) beginner.done(told_status, -1);
      for (Leader& each : leaders) each.done(leaders_status);
      for (Ender& ender : enders) ender.done(Status());
    }
  };

  State(std::string of_clock, std::int64_t replicas, std::int64_t most)
      : name(std::move(of_clock)), staleness(most), of(static_cast<std::size_t>(replicas)) {}

  const std::string name;  ///< its description
  const std::int64_t staleness;
  mutable std::mutex mutex;
  std::vector<Replica> of;  ///< by rank
  std::int64_t last_member = 0;
  std::int64_t least = 0;
  std::int64_t num_changes = 0;     ///< of present replicas, and of clocks
  Status failed = Status();         ///< others were too late
  bool is_leader_lost = false;      ///< and nobody leads
  std::int64_t leader = -1;         ///< the rank that led last
  bool have_all_left = false;       ///< and the watcher knows
  std::vector<std::int32_t> known;  ///< to the watcher
  detail::WaitList<Waiter> waiters;
  detail::WaitList<Leaver> leavers;
  detail::WaitList<Watcher> watchers;
  detail::WaitList<Beginner> beginners;
  detail::WaitList<Leader> leaders;  ///< one at most
  detail::WaitList<Ender> enders;

  void give_up(Waiter& waiter, const Status& status) { waiter.done(status, waiter.clock); }
  void give_up(Leaver& leaver, const Status& status) { leaver.done(status); }
  void give_up(Watcher& watcher, const Status& status) { watcher.done(status, {}); }
  void give_up(Beginner& beginner, const Status& status) { beginner.done(status, -1); }
  void give_up(Leader& leads, const Status& status) {
    {
      Due due;
      const std::lock_guard lock(mutex);
      if (leaders.is_empty()) lose_leader(due);
    }
    leads.done(status);
  }
  void give_up(Ender& ender, const Status& status) {
    {
      const std::lock_guard lock(mutex);
      if (enders.is_empty()) begin_anew();
    }
    ender.done(status);
  }

  Replica& replica(std::int64_t rank) { return of[static_cast<std::size_t>(rank)]; }
  /// Null if it is present no more.
  Replica* find(std::int64_t member) {
    const auto found = std::find_if(of.begin(), of.end(), [&](const Replica& one) {
      return one.standing == Standing::present && one.member == member;
    });
    return found == of.end() ? nullptr : &*found;
  }
  bool is_known(std::int64_t rank) const {
    return std::find(known.begin(), known.end(), static_cast<std::int32_t>(rank)) != known.end();
  }
  bool is_led() const noexcept { return !leaders.is_empty(); }
  void lose_leader(Due& due) {
    due.leavers = leavers.take_all();
    due.watchers = watchers.take_all();
    due.watchers_status = leader_is_lost();
    if (have_all_left || replica(leader).standing == Standing::left) return;
    is_leader_lost = true;
    due.others = waiters.take_all();
    due.others_status = leader_is_lost();
  }
  Status leader_is_lost() const {
    return Status::aborted(str_cat(name, ": the leader, replica ", leader, ", is lost"));
  }
  /// The replica has left. Returns those that join now: the leader that they wait for is not lost any more.
  std::vector<Beginner> note_left(std::int64_t rank, Due& due) {
    replica(rank).standing = Standing::left;
    due.others_status = Status::aborted(str_cat(name, ": replica ", rank, " has left"));
    note_change(due);
    if (rank != leader || !std::exchange(is_leader_lost, false)) return {};
    return beginners.take_if([](const Beginner& one) { return one.joins; });
  }
  /// Nobody has trained: the replicas that were told the end may come again.
  void begin_anew() {
    const auto is_present = [](const Replica& one) { return one.standing == Standing::present; };
    if (is_led() || std::any_of(of.begin(), of.end(), is_present)) return;
    for (Replica& one : of) one.standing = Standing::unknown;
  }
  /// Tells the replicas that wait without a model that the training ends, and the chief when all are told.
  void tell_end(Due& due) {
    if (enders.is_empty()) return;
    const std::int64_t chief = enders.front().rank;
    due.told = beginners.take_if([](const Beginner& one) { return !one.joins; });
    due.told_status =
        Status::out_of_range(str_cat(name, ": the chief, replica ", chief, ", was told to stop before it led"));
    for (const Beginner& one : due.told) replica(one.rank).standing = Standing::left;
    if (due.others_status.ok()) due.others_status = due.told_status;
    if (!due.told.empty()) note_change(due);
    if (std::any_of(of.begin(), of.end(), [](const Replica& one) { return one.standing == Standing::unknown; })) return;
    due.enders = enders.take_all();
    begin_anew();
  }
  bool may_begin(std::int64_t clock) const noexcept { return clock - least <= staleness; }
  std::vector<std::int32_t> gone() const {
    return detail::ranks_where(
        of, [](const Replica& one) { return one.standing == Standing::left || one.standing == Standing::given_up; });
  }
  template <class Call>
  static void add(std::vector<Call>& to, std::vector<Call> calls) {
    to.insert(to.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  }
  /// Tells the calls that are concerned: a replica joined or left, or a clock changed.
  void note_change(Due& due) {
    ++num_changes;
    std::int64_t slowest = -1;
    for (const Replica& one : of) {
      if (one.standing == Standing::present && (slowest < 0 || one.clock < slowest)) slowest = one.clock;
    }
    if (slowest >= 0) least = slowest;
    add(due.others, waiters.take_if([&](const Waiter& waiter) { return find(waiter.member) == nullptr; }));
    add(due.waiters, waiters.take_if([&](const Waiter& waiter) { return may_begin(waiter.clock); }));
    due.gone = gone();
    if (due.gone != known) add(due.watchers, watchers.take_all());
  }
};

StalenessClockState::StalenessClockState(std::string name, std::int64_t replicas, std::int64_t staleness)
    : name_(std::move(name)),
      replicas_(replicas),
      staleness_(staleness),
      state_(std::make_shared<State>(debug_string(), std::max<std::int64_t>(replicas, 0), staleness)) {
  if (replicas < 1 || staleness < 0) {
    throw_error(Status::invalid_argument(str_cat(debug_string(), ": not 1 <= replicas and 0 <= staleness")));
  }
}
StalenessClockState::~StalenessClockState() = default;

std::string StalenessClockState::debug_string() const {
  return str_cat("StalenessClock '", name_, "' (", replicas_, " replicas, staleness ", staleness_, ")");
}

std::vector<AnyTensor> StalenessClockState::saved_state() const {
  const std::lock_guard lock(state_->mutex);
  return detail::left_state(state_->of,
                            [](const State::Replica& one) { return one.standing == State::Standing::left; });
}

void StalenessClockState::restore_state(std::span<const AnyTensor> state) {
  const std::span<const bool> left = detail::left_in(state, replicas_, *this);
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  for (std::size_t rank = 0; rank < left.size(); ++rank) {
    State::Replica& one = state_->of[rank];
    if (left[rank] && one.standing == State::Standing::unknown) one.standing = State::Standing::left;
  }
  state_->note_change(due);
}

void StalenessClockState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::waiters, why);
  detail::end_waiting(kept, &State::leavers, why);
  detail::end_waiting(kept, &State::watchers, why);
  detail::end_waiting(kept, &State::beginners, why);
  detail::end_waiting(kept, &State::enders, why);
  detail::end_waiting(kept, &State::leaders, why);
}

void StalenessClockState::require_rank(std::int64_t rank) const { detail::require_rank(rank, replicas_, *this); }

Status StalenessClockState::not_present(std::int64_t member) const {
  return Status::aborted(str_cat(debug_string(), ": member ", member,
                                 " is present no more: it was given up, has left, or another one has its rank"));
}

std::int64_t StalenessClockState::join(std::int64_t rank) {
  require_rank(rank);
  State::Due due;
  const std::string taken = str_cat(debug_string(), ": another one has joined as replica ", rank);
  due.others_status = Status::aborted(taken);
  due.leavers_status = Status::already_exists(taken);
  const std::lock_guard lock(state_->mutex);
  due.leavers = state_->leavers.take_if([&](const State::Leaver& leaver) { return leaver.rank == rank; });
  // If the earlier member is the slowest, it has not finished its step: its successor begins with that step.
  state_->replica(rank) = {State::Standing::present, ++state_->last_member, state_->least};
  state_->failed = Status();
  state_->have_all_left = false;
  const std::int64_t member = state_->last_member;
  state_->note_change(due);
  state_->tell_end(due);
  return member;
}

void StalenessClockState::begin_async(std::int64_t rank, bool joins, const CancellationToken& cancellation,
                                      JoinDone done) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (joins ? !state_->is_leader_lost : state_->is_led()) {
    lock.unlock();
    return done(Status(), joins ? join(rank) : -1);
  }
  const std::uint64_t id = state_->beginners.add(State::Beginner{rank, joins, std::move(done)});
  state_->tell_end(due);
  detail::wait_for(state_, &State::beginners, lock, id, cancellation);
}

void StalenessClockState::join_async(std::int64_t rank, const CancellationToken& cancellation, JoinDone done) {
  begin_async(rank, true, cancellation, std::move(done));
}

void StalenessClockState::await_leader_async(std::int64_t rank, const CancellationToken& cancellation, JoinDone done) {
  begin_async(rank, false, cancellation, std::move(done));
}

void StalenessClockState::lead_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done) {
  require_rank(rank);
  State::Due due;
  due.leaders_status = Status::already_exists(str_cat(debug_string(), ": somebody else leads now"));
  std::unique_lock lock(state_->mutex);
  due.leaders = state_->leaders.take_all();
  due.enders = state_->enders.take_all();
  state_->leader = rank;
  state_->is_leader_lost = false;
  std::vector<State::Beginner> beginners = state_->beginners.take_all();
  const std::uint64_t id = state_->leaders.add(State::Leader{rank, std::move(done)});
  lock.unlock();
  for (State::Beginner& one : beginners) one.done(Status(), one.joins ? join(one.rank) : -1);
  lock.lock();
  detail::wait_for(state_, &State::leaders, lock, id, cancellation);
}

void StalenessClockState::wait_async(std::int64_t member, const CancellationToken& cancellation, WaitDone done) {
  std::unique_lock lock(state_->mutex);
  const State::Replica* const one = state_->find(member);
  if (one == nullptr) {
    lock.unlock();
    return done(not_present(member), 0);
  }
  const std::int64_t clock = one->clock;
  const bool may_begin = state_->may_begin(clock);
  if (may_begin || !state_->failed.ok() || state_->is_leader_lost) {
    Status status = state_->is_leader_lost ? state_->leader_is_lost() : state_->failed;
    if (may_begin) status = Status();
    lock.unlock();
    return done(status, clock);
  }
  detail::wait_for(state_, &State::waiters, lock, state_->waiters.add(State::Waiter{member, clock, std::move(done)}),
                   cancellation);
}

void StalenessClockState::tick(std::int64_t member) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  State::Replica* const one = state_->find(member);
  if (one == nullptr) throw_error(not_present(member));
  ++one->clock;
  state_->note_change(due);
}

void StalenessClockState::leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  const State::Standing before = state_->replica(rank).standing;
  const bool had_gone = before == State::Standing::left || before == State::Standing::given_up;
  std::vector<State::Beginner> joining = state_->note_left(rank, due);
  state_->tell_end(due);
  if (!state_->is_led() || state_->have_all_left || (had_gone && state_->is_known(rank))) {
    lock.unlock();
    for (State::Beginner& beginner : joining) beginner.done(Status(), join(beginner.rank));
    return done(Status());
  }
  detail::wait_for(state_, &State::leavers, lock, state_->leavers.add(State::Leaver{rank, std::move(done)}),
                   cancellation);
}

void StalenessClockState::end_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (state_->is_led()) {
    lock.unlock();
    return leave_async(rank, cancellation, std::move(done));
  }
  std::vector<State::Beginner> joining = state_->note_left(rank, due);
  const std::uint64_t id = state_->enders.add(State::Ender{rank, std::move(done)});
  lock.unlock();
  for (State::Beginner& beginner : joining) beginner.done(Status(), join(beginner.rank));
  lock.lock();
  state_->tell_end(due);
  detail::wait_for(state_, &State::enders, lock, id, cancellation);
}

void StalenessClockState::watch_async(std::vector<std::int32_t> known, const CancellationToken& cancellation,
                                      WatchDone done) {
  for (const std::int32_t rank : known) require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (known.empty() && std::exchange(state_->have_all_left, false)) {
    for (State::Replica& one : state_->of) one.standing = State::Standing::unknown;  // they train anew
  }
  for (const std::int32_t rank : known) {
    State::Replica& one = state_->replica(rank);
    if (one.standing == State::Standing::unknown) one.standing = State::Standing::left;
  }
  state_->known = std::move(known);
  due.leavers = state_->leavers.take_if([&](const State::Leaver& leaver) { return state_->is_known(leaver.rank); });
  std::vector<std::int32_t> gone = state_->gone();
  state_->have_all_left = gone.size() == state_->of.size() && gone == state_->known;
  if (gone != state_->known || state_->have_all_left) {
    lock.unlock();
    return done(Status(), std::move(gone));
  }
  detail::wait_for(state_, &State::watchers, lock, state_->watchers.add(State::Watcher{std::move(done)}), cancellation);
}

std::int64_t StalenessClockState::drop_late(std::int64_t since, bool fails, bool only_names) {
  using Standing = State::Standing;
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  const auto has = [&](Standing standing) {
    return std::any_of(state_->of.begin(), state_->of.end(),
                       [&](const State::Replica& one) { return one.standing == standing; });
  };
  const bool are_others_gone = !has(Standing::present) && (has(Standing::left) || has(Standing::given_up));
  const Standing of_late = are_others_gone ? Standing::unknown : Standing::present;
  // A replica that has left waits for the rest too: if one died on the way, it would never leave.
  const bool is_one_left = has(Standing::present) && has(Standing::left);
  if (state_->waiters.is_empty() && !is_one_left && !(are_others_gone && has(Standing::unknown))) return -1;
  if (since != state_->num_changes) return state_->num_changes;
  const auto is_late = [&](const State::Replica& one) {
    return one.standing == of_late && (are_others_gone || one.clock == state_->least);
  };
  const Status late = Status::deadline_exceeded(str_cat(debug_string(), ": replicas ",
                                                        detail::ranks_text(detail::ranks_where(state_->of, is_late)),
                                                        " have not finished step ", state_->least, " in time"));
  if (only_names) throw_error(late);
  if (fails) {
    state_->failed = due.others_status = late;
    due.others = state_->waiters.take_all();
    throw_error(late);
  }
  for (State::Replica& one : state_->of) {
    if (is_late(one)) one.standing = Standing::given_up;
  }
  state_->note_change(due);
  return -1;
}

std::int64_t StalenessClockState::num_present() const {
  const std::lock_guard lock(state_->mutex);
  return std::count_if(state_->of.begin(), state_->of.end(),
                       [](const auto& one) { return one.standing == State::Standing::present; });
}

std::int64_t StalenessClockState::least_clock() const {
  const std::lock_guard lock(state_->mutex);
  return state_->least;
}

}  // namespace dflow
