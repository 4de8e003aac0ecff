#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/state/replica_ranks.hpp>
#include <dflow/state/token_barrier_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace dflow {

struct TokenBarrierState::State {
  struct Waiter {
    std::int64_t rank;
    std::int64_t local_step;
    WaitDone done;
  };
  struct Collector {
    CollectDone done;
  };
  struct Leaver {
    std::int64_t rank;
    LeaveDone done;
    bool for_good;
  };
  /// The chief, which does not lead.
  struct Ender {
    EndDone done;
  };
  static constexpr std::int64_t of_leader = -1;
  struct Holder {
    std::int64_t rank;    ///< or `of_leader`
    std::int64_t leader;  ///< its number
    HoldDone done;
  };
  enum class Left : std::uint8_t { no, untold, told, known };  ///< to the leader
  struct Replica {
    bool is_present = true;
    bool has_arrived = false;
    Left left = Left::no;
    bool is_leaving = false;  ///< and has not been told that it is known
    bool was_here = false;
  };
  /// The calls to complete when the lock is released.
  struct Due {
    std::vector<Waiter> waiters;
    std::vector<Collector> collectors;
    std::vector<Leaver> leavers, known_leavers;
    std::vector<Ender> enders;
    std::vector<Holder> holders;
    Collected collected;
    Status waiters_status, collectors_status, leavers_status, holders_status;
    std::int64_t step = 0;

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    ~Due() {
      for (Waiter& waiter : waiters) waiter.done(waiters_status, step);
      for (Collector& collector : collectors) collector.done(collectors_status, std::exchange(collected, {}));
      for (Leaver& leaver : leavers) leaver.done(leavers_status);
      for (Leaver& leaver : known_leavers) leaver.done(Status());
      for (Ender& ender : enders) ender.done(Status());
      for (Holder& holder : holders) holder.done(holders_status);
    }
  };

  State(std::string of_barrier, std::int64_t replicas)
      : barrier(std::move(of_barrier)), of(static_cast<std::size_t>(replicas)) {}

  const std::string barrier;  ///< its description
  mutable std::mutex mutex;
  std::vector<Replica> of;  ///< by rank
  std::int64_t step = -1;
  std::int64_t leader = 0;  ///< that opened it last
  bool is_open = false;
  bool is_advancing = false;  ///< the leader knows the arrivals, and makes the step
  bool is_over = false;       ///< the training has ended
  Status closed = Status();   ///< why, if it was open before
  detail::WaitList<Waiter> waiters;
  detail::WaitList<Collector> collectors;
  detail::WaitList<Leaver> leavers;
  detail::WaitList<Ender> enders;
  detail::WaitList<Holder> holders;

  void give_up(Waiter& waiter, const Status& status) { waiter.done(status, step_now()); }
  void give_up(Collector& collector, const Status& status) { collector.done(status, {}); }
  void give_up(Leaver& leaver, const Status& status) {
    {
      const std::lock_guard lock(mutex);
      const bool still_leaves = leavers.has_if([&](const Leaver& other) { return other.rank == leaver.rank; });
      if (!leaver.for_good && !still_leaves && replica(leaver.rank).left == Left::untold) stay(leaver.rank);
    }
    leaver.done(status);
  }
  void give_up(Ender& ender, const Status& status) {
    {
      const std::lock_guard lock(mutex);
      is_over |= !is_open && enders.is_empty();
    }
    ender.done(status);
  }
  void give_up(Holder& holder, const Status& status) {
    {
      Due due;
      const std::lock_guard lock(mutex);
      if (holder.rank == of_leader && holder.leader == leader && is_open) close(Close::lost, due);
    }
    holder.done(status);
  }
  std::int64_t step_now() const {
    const std::lock_guard lock(mutex);
    return step;
  }

  Replica& replica(std::int64_t rank) { return of[static_cast<std::size_t>(rank)]; }
  std::vector<std::int32_t> missing() const {
    return detail::ranks_where(of, [](const Replica& one) { return one.is_present && !one.has_arrived; });
  }
  bool is_held(std::int64_t rank) const {
    return holders.has_if([&](const Holder& holder) { return holder.rank == rank; });
  }
  /// A call that `begins` takes the place of the call that waits under its rank.
  void return_to(std::int64_t rank, bool begins, Due& due) {
    stay(rank);
    replica(rank).was_here = true;
    due.leavers = leavers.take_if([&](const Leaver& leaver) { return leaver.rank == rank; });
    if (begins) due.waiters = waiters.take_if([&](const Waiter& waiter) { return waiter.rank == rank; });
    if (due.leavers.empty() && due.waiters.empty()) return;
    due.leavers_status = due.waiters_status =
        Status::already_exists(str_cat(barrier, ": another process is replica ", rank, " now"));
  }
  /// After the end all are present again, to train anew.
  void begin_anew() {
    if (!std::exchange(is_over, false)) return;
    for (Replica& one : of) one = {};
  }
  /// All end before anybody has led, and this replica has been told.
  bool is_ended(std::int64_t rank, Due& due) {
    if (is_open || enders.is_empty()) return false;
    replica(rank).is_present = false;
    end_if_all_know(due);
    return true;
  }
  void end_if_all_know(Due& due) {
    if (enders.is_empty() || std::any_of(of.begin(), of.end(), [](const Replica& one) { return one.is_present; })) {
      return;
    }
    due.enders = enders.take_all();
    is_over = true;
  }
  /// Whether the collector may be served, with its result.
  bool is_collected(std::int64_t aggregate, Collected& collected, Status& status) {
    collected.arrived = detail::ranks_where(of, [](const Replica& one) { return one.has_arrived; });
    collected.left = detail::ranks_where(of, [](const Replica& one) { return one.left != Left::no; });
    const auto reachable =
        std::count_if(of.begin(), of.end(), [](const Replica& one) { return one.is_present || one.has_arrived; });
    if (reachable == 0) status = Status::out_of_range("all replicas have left");
    const bool is_enough =
        static_cast<std::int64_t>(collected.arrived.size()) >= std::min<std::int64_t>(aggregate, reachable);
    if (!is_enough) collected.arrived.clear();
    const bool tells = std::any_of(of.begin(), of.end(), [](const Replica& one) { return one.left == Left::untold; });
    if (!is_enough && !tells) return false;
    for (Replica& one : of) {
      if (one.left == Left::untold) one.left = Left::told;
    }
    is_advancing = is_enough && status.ok();
    return true;
  }
  void serve_collectors(std::int64_t aggregate, Due& due) {
    if (!collectors.is_empty() && is_collected(aggregate, due.collected, due.collectors_status)) {
      due.collectors = collectors.take_all();
    }
  }
  /// The leader has come again: it knows the leavers that it was told of, or has not heard of them.
  void note_known(bool has_heard, Due& due) {
    for (Replica& one : of) {
      if (one.left != Left::told) continue;
      one.left = has_heard ? Left::known : Left::untold;
      if (!has_heard) continue;
      one.is_leaving = false;
    }
    due.leavers = leavers.take_if(
        [&](const Leaver& leaver) { return of[static_cast<std::size_t>(leaver.rank)].left == Left::known; });
  }
  void stay(std::int64_t rank) {
    replica(rank).is_present = true;
    replica(rank).left = Left::no;
    replica(rank).is_leaving = false;
  }
  /// Replicas that are leaving are to come back, unless they leave for good.
  void call_back_leavers(Due& due, Status why) {
    due.leavers = leavers.take_all();
    due.leavers_status = std::move(why);
    for (const Leaver& leaver : due.leavers) {
      if (!leaver.for_good) stay(leaver.rank);
    }
  }
  /// No step is being made: a replica that has not arrived is to do this one.
  void release_latecomers(Due& due) {
    due.waiters = waiters.take_if(
        [&](const Waiter& waiter) { return waiter.local_step != step || !replica(waiter.rank).has_arrived; });
    due.step = step;
  }
  void begin(std::int64_t next, Due& due) {
    is_advancing = false;
    due.waiters = waiters.take_all();
    step = due.step = next;
    for (Replica& one : of) one.has_arrived = false;
  }
  Status status_of(Close why) const {
    switch (why) {
      case Close::done:
        return Status::out_of_range(str_cat(barrier, ": the last step, ", step, ", has been done"));
      case Close::stopped:
        return Status::out_of_range(str_cat(barrier, ": who leads was told to stop, and step ", step, " is not made"));
      case Close::lost:
        return Status::aborted(str_cat(barrier, ": who leads has failed at step ", step));
      case Close::late:
        break;
    }
    return Status::deadline_exceeded(
        str_cat(barrier, ": replicas ", detail::ranks_text(missing()), " have not arrived at step ", step, " in time"));
  }
  void close(Close why, Due& due) {
    if (!is_open && !enders.is_empty()) return;  // the chief's word counts
    closed = status_of(why);
    is_open = is_advancing = false;
    is_over |= why == Close::done || why == Close::stopped;
    due.step = step;
    due.waiters_status = due.collectors_status = closed;
    due.waiters = waiters.take_if([](const Waiter& waiter) { return waiter.local_step >= 0; });
    due.collectors = collectors.take_all();
    due.holders = holders.take_if([](const Holder& holder) { return holder.rank == of_leader; });
    if (why == Close::lost) return call_back_leavers(due, closed);
    due.leavers = leavers.take_all();
    for (const Leaver& leaver : due.leavers) replica(leaver.rank).is_leaving = false;
  }
};

TokenBarrierState::TokenBarrierState(std::string name, std::int64_t replicas, std::int64_t aggregate)
    : name_(std::move(name)),
      replicas_(replicas),
      aggregate_(aggregate),
      state_(std::make_shared<State>(debug_string(), std::max<std::int64_t>(replicas, 0))) {
  if (replicas < 1 || aggregate < 1 || aggregate > replicas) {
    throw_error(Status::invalid_argument(str_cat(debug_string(), ": not 1 <= aggregate <= replicas")));
  }
}
TokenBarrierState::~TokenBarrierState() = default;

void TokenBarrierState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::waiters, why);
  detail::end_waiting(kept, &State::collectors, why);
  detail::end_waiting(kept, &State::leavers, why);
  detail::end_waiting(kept, &State::enders, why);
  detail::end_waiting(kept, &State::holders, why);
}

std::string TokenBarrierState::debug_string() const {
  return str_cat("TokenBarrier '", name_, "' (", aggregate_, " of ", replicas_, ")");
}

std::vector<AnyTensor> TokenBarrierState::saved_state() const {
  const std::lock_guard lock(state_->mutex);
  return detail::left_state(state_->of, [&](const State::Replica& one) {
    return !state_->is_over && one.left != State::Left::no && !one.is_leaving;
  });
}

void TokenBarrierState::restore_state(std::span<const AnyTensor> state) {
  const std::span<const bool> left = detail::left_in(state, replicas_, *this);
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  for (std::size_t rank = 0; rank < left.size(); ++rank) {
    State::Replica& one = state_->of[rank];
    if (!left[rank] || one.was_here) continue;
    one.is_present = false;
    one.left = State::Left::untold;
  }
  state_->serve_collectors(aggregate_, due);
}

void TokenBarrierState::require_rank(std::int64_t rank) const { detail::require_rank(rank, replicas_, *this); }

/// Called with the lock.
void TokenBarrierState::require_leader(std::int64_t leader) const {
  if (leader == state_->leader) return;
  throw_error(Status::already_exists(str_cat(debug_string(), " was opened by somebody else, who leads now")));
}

void TokenBarrierState::open(std::int64_t step, std::int64_t leader, std::span<const std::int32_t> left) {
  for (const std::int32_t rank : left) require_rank(rank);
  State::Due due;
  due.collectors_status =
      Status::already_exists(str_cat(debug_string(), " was opened by somebody else, who leads now"));
  const std::lock_guard lock(state_->mutex);
  due.collectors = state_->collectors.take_all();
  due.holders_status = due.collectors_status;
  due.holders = state_->holders.take_if([](const State::Holder& holder) { return holder.rank == State::of_leader; });
  due.enders = state_->enders.take_all();
  state_->begin_anew();
  state_->begin(step, due);
  state_->leader = leader;
  state_->is_open = true;
  for (State::Replica& one : state_->of) {
    if (one.left != State::Left::no) one.left = State::Left::untold;
  }
  const auto waits = [&](std::int32_t rank) {
    return std::any_of(due.waiters.begin(), due.waiters.end(),
                       [&](const State::Waiter& waiter) { return waiter.rank == rank; });
  };
  std::vector<State::Leaver> known;
  for (const std::int32_t rank : left) {
    if (waits(rank)) continue;  // it is back
    state_->replica(rank).is_present = false;
    state_->replica(rank).left = State::Left::known;
    state_->replica(rank).is_leaving = false;
    for (State::Leaver& leaver : state_->leavers.take_if([&](const auto& one) { return one.rank == rank; })) {
      known.push_back(std::move(leaver));
    }
  }
  due.known_leavers = std::move(known);
  state_->call_back_leavers(due, Status::aborted(str_cat(debug_string(), " was opened again before its leader knew")));
}

void TokenBarrierState::arrive(std::int64_t rank, std::int64_t local_step) {
  require_rank(rank);
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  State::Replica& one = state_->replica(rank);
  state_->return_to(rank, false, due);
  if (!state_->is_open || local_step != state_->step) return;
  one.has_arrived = true;
  state_->serve_collectors(aggregate_, due);
}

void TokenBarrierState::wait_async(std::int64_t rank, std::int64_t local_step, const CancellationToken& cancellation,
                                   WaitDone done) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status(), -1);
  }
  const bool begins = local_step < 0;
  if (begins) state_->begin_anew();
  const State::Replica& one = state_->replica(rank);
  state_->return_to(rank, begins, due);
  const std::int64_t step = state_->step;
  const bool is_ended = state_->is_ended(rank, due);
  if (is_ended || (!state_->is_open && !state_->closed.ok() && !begins)) {
    const Status closed = state_->closed;
    lock.unlock();
    return done(closed, step);
  }
  // A replica that has not arrived (the barrier may have been opened again since) would wait for itself.
  if (state_->is_open && !state_->is_advancing && (step != local_step || !one.has_arrived)) {
    lock.unlock();
    return done(Status(), step);
  }
  detail::wait_for(state_, &State::waiters, lock, state_->waiters.add(State::Waiter{rank, local_step, std::move(done)}),
                   cancellation);
}

void TokenBarrierState::collect_async(std::int64_t leader, const CancellationToken& cancellation, CollectDone done,
                                      bool has_heard) {
  State::Due due;
  due.collectors_status = Status::already_exists(str_cat(debug_string(), ": somebody else collects, and leads now"));
  std::unique_lock lock(state_->mutex);
  require_leader(leader);
  due.collectors = state_->collectors.take_all();
  state_->note_known(has_heard, due);
  Collected collected;
  Status status;
  if (!state_->is_open) {
    status = Status::aborted(str_cat(debug_string(), " is not open"));
  } else if (!state_->is_collected(aggregate_, collected, status)) {
    if (std::exchange(state_->is_advancing, false)) state_->release_latecomers(due);
    return detail::wait_for(state_, &State::collectors, lock, state_->collectors.add(State::Collector{std::move(done)}),
                            cancellation);
  }
  lock.unlock();
  done(std::move(status), std::move(collected));
}

void TokenBarrierState::advance(std::int64_t step, std::int64_t leader) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  require_leader(leader);
  if (!state_->is_open) throw_error(Status::aborted(str_cat(debug_string(), " is not open")));
  state_->begin(step, due);
}

void TokenBarrierState::leave_async(std::int64_t rank, const CancellationToken& cancellation, LeaveDone done,
                                    bool for_good) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  State::Replica& one = state_->replica(rank);
  if (!state_->is_over) {
    one.is_present = false;
    if (one.left == State::Left::no) one.left = State::Left::untold;
    due.step = state_->step;
    due.waiters = state_->waiters.take_if(
        [&](const State::Waiter& waiter) { return waiter.rank == rank && waiter.local_step >= 0; });
    state_->serve_collectors(aggregate_, due);
    state_->end_if_all_know(due);
  }
  if (!state_->is_open || one.left == State::Left::known) {
    const bool is_lost = one.left != State::Left::known && state_->closed.code() == Code::aborted;
    const Status status = is_lost ? state_->closed : Status();
    if (is_lost && !for_good) state_->stay(rank);
    lock.unlock();
    return done(status);
  }
  one.is_leaving = !for_good;
  detail::wait_for(state_, &State::leavers, lock, state_->leavers.add(State::Leaver{rank, std::move(done), for_good}),
                   cancellation);
}

void TokenBarrierState::end_async(std::int64_t rank, const CancellationToken& cancellation, EndDone done) {
  require_rank(rank);
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (state_->is_open) {
    lock.unlock();
    return leave_async(rank, cancellation, std::move(done), true);
  }
  state_->begin_anew();
  state_->closed =
      Status::out_of_range(str_cat(debug_string(), ": the chief, replica ", rank, ", was told to stop before it led"));
  state_->replica(rank).is_present = false;
  due.step = state_->step;
  due.waiters_status = state_->closed;
  due.waiters = state_->waiters.take_all();
  for (const State::Waiter& waiter : due.waiters) state_->replica(waiter.rank).is_present = false;
  const std::uint64_t id = state_->enders.add(State::Ender{std::move(done)});
  state_->end_if_all_know(due);
  detail::wait_for(state_, &State::enders, lock, id, cancellation);
}

std::vector<std::int32_t> TokenBarrierState::missing() const {
  const std::lock_guard lock(state_->mutex);
  return state_->missing();
}

void TokenBarrierState::hold_leader_async(std::int64_t leader, const CancellationToken& cancellation, HoldDone done) {
  std::unique_lock lock(state_->mutex);
  require_leader(leader);
  if (!state_->is_open) throw_error(Status::aborted(str_cat(debug_string(), " is not open")));
  detail::wait_for(state_, &State::holders, lock,
                   state_->holders.add(State::Holder{State::of_leader, leader, std::move(done)}), cancellation);
}

void TokenBarrierState::hold_replica_async(std::int64_t rank, const CancellationToken& cancellation, HoldDone done) {
  require_rank(rank);
  State::Due due;
  due.holders_status = Status::already_exists(str_cat(debug_string(), ": another call is replica ", rank, " now"));
  std::unique_lock lock(state_->mutex);
  due.holders = state_->holders.take_if([&](const State::Holder& holder) { return holder.rank == rank; });
  detail::wait_for(state_, &State::holders, lock, state_->holders.add(State::Holder{rank, 0, std::move(done)}),
                   cancellation);
}

std::vector<std::int32_t> TokenBarrierState::drop_missing(std::int64_t leader, GiveUp which) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  require_leader(leader);
  std::vector<std::int32_t> ranks = state_->missing();
  if (which == GiveUp::none) return ranks;
  const bool has_any =
      std::any_of(state_->of.begin(), state_->of.end(), [](const auto& one) { return one.has_arrived; });
  if (has_any != (which == GiveUp::missing)) return {};
  if (which == GiveUp::lost) std::erase_if(ranks, [&](std::int32_t rank) { return state_->is_held(rank); });
  for (const std::int32_t rank : ranks) state_->replica(rank).is_present = false;
  state_->serve_collectors(aggregate_, due);
  return ranks;
}

void TokenBarrierState::close(Close why, std::int64_t leader) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  require_leader(leader);
  state_->close(why, due);
}

std::int64_t TokenBarrierState::step() const { return state_->step_now(); }

std::int64_t TokenBarrierState::num_present() const {
  const std::lock_guard lock(state_->mutex);
  return std::count_if(state_->of.begin(), state_->of.end(), [](const auto& one) { return one.is_present; });
}

}  // namespace dflow
