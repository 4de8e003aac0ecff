#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/token_barrier_state.hpp>
#include <dflow/kernels/state/wait_list.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace dflow {

struct TokenBarrierState::State {
  struct Waiter {
    std::int64_t local_step;
    WaitDone done;
  };
  struct Collector {
    CollectDone done;
  };
  struct Replica {
    bool is_present = true;
    bool has_arrived = false;
  };
  /// What is to be told when the lock is released.
  struct Due {
    std::vector<Waiter> waiters;
    std::vector<Collector> collectors;
    std::vector<std::int32_t> ranks;
    Status waiters_status, collectors_status;
    std::int64_t step = 0;

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    ~Due() {
      for (Waiter& waiter : waiters) waiter.done(waiters_status, step);
      for (Collector& collector : collectors) collector.done(collectors_status, std::exchange(ranks, {}));
    }
  };

  explicit State(std::int64_t replicas) : of(static_cast<std::size_t>(replicas)) {}

  mutable std::mutex mutex;
  std::vector<Replica> of;  ///< by rank
  std::int64_t step = -1;
  bool is_open = false;
  Status closed = Status();  ///< why, where it was open before
  detail::WaitList<Waiter> waiters;
  detail::WaitList<Collector> collectors;

  void give_up(Waiter& waiter, const Status& status) { waiter.done(status, step_now()); }
  void give_up(Collector& collector, const Status& status) { collector.done(status, {}); }
  std::int64_t step_now() const {
    const std::lock_guard lock(mutex);
    return step;
  }

  Replica& replica(std::int64_t rank) { return of[static_cast<std::size_t>(rank)]; }
  template <class Is>
  std::vector<std::int32_t> ranks_of(const Is& is) const {
    std::vector<std::int32_t> ranks;
    ranks.reserve(of.size());
    for (std::size_t rank = 0; rank < of.size(); ++rank) {
      if (is(of[rank])) ranks.push_back(static_cast<std::int32_t>(rank));
    }
    return ranks;
  }
  std::vector<std::int32_t> missing() const {
    return ranks_of([](const Replica& one) { return one.is_present && !one.has_arrived; });
  }
  /// Whether the collector may be served, and what it is told.
  bool is_collected(std::int64_t aggregate, std::vector<std::int32_t>& ranks, Status& status) const {
    ranks = ranks_of([](const Replica& one) { return one.has_arrived; });
    const auto reachable =
        std::count_if(of.begin(), of.end(), [](const Replica& one) { return one.is_present || one.has_arrived; });
    if (reachable == 0) status = out_of_range("all replicas have left");
    return static_cast<std::int64_t>(ranks.size()) >= std::min<std::int64_t>(aggregate, reachable);
  }
  void serve_collectors(std::int64_t aggregate, Due& due) {
    if (!collectors.is_empty() && is_collected(aggregate, due.ranks, due.collectors_status)) {
      due.collectors = collectors.take_all();
    }
  }
  void begin(std::int64_t next, Due& due) {
    due.waiters = waiters.take_all();
    step = due.step = next;
    for (Replica& one : of) one.has_arrived = false;
  }
};

DFLOW_INLINE TokenBarrierState::TokenBarrierState(std::string name, std::int64_t replicas, std::int64_t aggregate)
    : name_(std::move(name)),
      replicas_(replicas),
      aggregate_(aggregate),
      state_(std::make_shared<State>(std::max<std::int64_t>(replicas, 0))) {
  if (replicas < 1 || aggregate < 1 || aggregate > replicas) {
    throw_error(invalid_argument(str_cat(debug_string(), ": not 1 <= aggregate <= replicas")));
  }
}
DFLOW_INLINE TokenBarrierState::~TokenBarrierState() = default;

DFLOW_INLINE std::string TokenBarrierState::debug_string() const {
  return str_cat("TokenBarrier '", name_, "' (", aggregate_, " of ", replicas_, ")");
}

DFLOW_INLINE void TokenBarrierState::require_rank(std::int64_t rank) const {
  if (rank >= 0 && rank < replicas_) return;
  throw_error(invalid_argument(str_cat(debug_string(), ": rank ", rank, " is outside [0, ", replicas_, ")")));
}

DFLOW_INLINE void TokenBarrierState::open(std::int64_t step) {
  State::Due due;
  due.collectors_status = already_exists(str_cat(debug_string(), " was opened by somebody else, who leads now"));
  const std::lock_guard lock(state_->mutex);
  state_->begin(step, due);
  state_->is_open = true;
  const bool have_all_left =
      std::none_of(state_->of.begin(), state_->of.end(), [](const auto& one) { return one.is_present; });
  for (State::Replica& one : state_->of) one.is_present |= have_all_left;
  due.collectors = state_->collectors.take_all();
}

DFLOW_INLINE void TokenBarrierState::arrive(std::int64_t rank, std::int64_t local_step) {
  require_rank(rank);
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  State::Replica& one = state_->replica(rank);
  one.is_present = true;
  if (!state_->is_open || local_step != state_->step) return;
  one.has_arrived = true;
  state_->serve_collectors(aggregate_, due);
}

DFLOW_INLINE void TokenBarrierState::wait_async(std::int64_t rank, std::int64_t local_step,
                                                const CancellationToken& cancellation, WaitDone done) {
  require_rank(rank);
  std::unique_lock lock(state_->mutex);
  State::Replica& one = state_->replica(rank);
  one.is_present = true;
  const std::int64_t step = state_->step;
  if (!state_->is_open && !state_->closed.ok() && local_step >= 0) {
    const Status closed = state_->closed;
    lock.unlock();
    return done(closed, step);
  }
  // Who has not arrived, maybe because the barrier was opened again since, would wait for itself.
  if (state_->is_open && (step != local_step || !one.has_arrived)) {
    lock.unlock();
    return done(Status(), step);
  }
  detail::wait_for(state_, &State::waiters, lock, state_->waiters.add(State::Waiter{local_step, std::move(done)}),
                   cancellation);
}

DFLOW_INLINE void TokenBarrierState::collect_async(const CancellationToken& cancellation, CollectDone done) {
  State::Due due;
  due.collectors_status = already_exists(str_cat(debug_string(), ": somebody else collects, and leads now"));
  std::unique_lock lock(state_->mutex);
  due.collectors = state_->collectors.take_all();
  std::vector<std::int32_t> ranks;
  Status status;
  if (!state_->is_open) {
    status = aborted(str_cat(debug_string(), " is not open"));
  } else if (!state_->is_collected(aggregate_, ranks, status)) {
    return detail::wait_for(state_, &State::collectors, lock, state_->collectors.add(State::Collector{std::move(done)}),
                            cancellation);
  }
  lock.unlock();
  done(std::move(status), std::move(ranks));
}

DFLOW_INLINE void TokenBarrierState::advance(std::int64_t step) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_open) throw_error(aborted(str_cat(debug_string(), " is not open")));
  state_->begin(step, due);
}

DFLOW_INLINE void TokenBarrierState::leave(std::int64_t rank) {
  require_rank(rank);
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->replica(rank).is_present = false;
  state_->serve_collectors(aggregate_, due);
}

DFLOW_INLINE std::vector<std::int32_t> TokenBarrierState::missing() const {
  const std::lock_guard lock(state_->mutex);
  return state_->missing();
}

DFLOW_INLINE std::vector<std::int32_t> TokenBarrierState::drop_missing() {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  const bool has_any =
      std::any_of(state_->of.begin(), state_->of.end(), [](const auto& one) { return one.has_arrived; });
  if (!has_any) return {};
  std::vector<std::int32_t> ranks = state_->missing();
  for (const std::int32_t rank : ranks) state_->replica(rank).is_present = false;
  state_->serve_collectors(aggregate_, due);
  return ranks;
}

DFLOW_INLINE void TokenBarrierState::close(Close why) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  if (why == Close::done) {
    state_->closed = out_of_range(str_cat(debug_string(), ": the last step, ", state_->step, ", has been done"));
  } else if (why == Close::lost) {
    state_->closed = aborted(str_cat(debug_string(), ": who leads has failed at step ", state_->step));
  } else {
    std::string ranks;
    for (const std::int32_t rank : state_->missing()) ranks += str_cat(ranks.empty() ? "" : ", ", rank);
    state_->closed = deadline_exceeded(
        str_cat(debug_string(), ": replicas ", ranks, " have not arrived at step ", state_->step, " in time"));
  }
  state_->is_open = false;
  due.step = state_->step;
  due.waiters_status = due.collectors_status = state_->closed;
  due.waiters = state_->waiters.take_if([](const State::Waiter& waiter) { return waiter.local_step >= 0; });
  due.collectors = state_->collectors.take_all();
}

DFLOW_INLINE std::int64_t TokenBarrierState::step() const { return state_->step_now(); }

DFLOW_INLINE std::int64_t TokenBarrierState::num_present() const {
  const std::lock_guard lock(state_->mutex);
  return std::count_if(state_->of.begin(), state_->of.end(), [](const auto& one) { return one.is_present; });
}

}  // namespace dflow
