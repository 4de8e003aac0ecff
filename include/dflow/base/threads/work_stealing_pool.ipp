#pragma once

#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/base/threads/task_ring.hpp>
#include <dflow/base/threads/thread_name.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/base/threads/wait_word.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace dflow {
namespace detail {

/// The owner takes the task it pushed last (its memory is warm), other threads take the first one (the largest piece).
class TaskDeque {
 public:
  bool is_empty() const noexcept { return size_.load() == 0; }

  void push_back(Task task) {
    const SpinGuard guard(lock_);
    ring_.push_back(std::move(task));
    size_.store(ring_.size());
  }
  Task pop_back() noexcept { return pop<&TaskRing::pop_back>(); }
  Task pop_front() noexcept { return pop<&TaskRing::pop_front>(); }

 private:
  template <auto take>
  Task pop() noexcept {
    if (is_empty()) return nullptr;
    const SpinGuard guard(lock_);
    if (ring_.size() == 0) return nullptr;
    Task task = (ring_.*take)();
    size_.store(ring_.size());
    return task;
  }

  SpinLock lock_;
  TaskRing ring_;
  std::atomic<std::size_t> size_{0};
};

/// One parallel_for, on its caller's stack. Threads join it under the pool's lock while it is listed there; the caller
/// takes it off the list, then waits until all joined threads have left.
struct LoopJob {
  static constexpr std::uint32_t caller_is_parked = 1u << 31;

  RangeBody body;
  std::int64_t total;
  std::int64_t shard;
  std::int64_t num_shards;
  int seats_left;

  bool is_open = false;
  LoopJob* newer = nullptr;
  LoopJob* older = nullptr;

  std::atomic<std::int64_t> next_shard{0};
  /// How many others are inside, and the flag above.
  std::atomic<std::uint32_t> inside{0};
  std::atomic<bool> has_failed{false};
  std::exception_ptr error = nullptr;

  void work() noexcept {
    while (true) {
      const std::int64_t index = next_shard.fetch_add(1, std::memory_order_relaxed);
      if (index >= num_shards) return;
      const std::int64_t begin = index * shard;
      try {
        body(begin, begin + std::min(shard, total - begin));
      } catch (...) {
        if (!has_failed.exchange(true)) error = std::current_exception();
        next_shard.store(num_shards, std::memory_order_relaxed);
      }
    }
  }
};

/// The role of the calling thread in the pool it works for.
ThreadPool::Membership& pool_member() noexcept {
  static constinit thread_local ThreadPool::Membership member;
  return member;
}

}  // namespace detail

/// How no wake-up is lost: a thread that adds work first publishes it, then looks for spinning and parked workers. A
/// worker that parks first says so, then looks for work once more. Both happen in sequentially consistent order, so
/// one of the two sees the other.
///
/// Threads share the state: one may be in a task, or in run_one, that destroys the pool.
struct WorkStealingPool::State {
  struct alignas(64) Worker {
    detail::TaskDeque tasks;
    /// 1 from the moment the worker says that it parks, until another thread or the worker itself takes that back.
    std::atomic<std::uint32_t> is_parked{0};
    std::thread thread;
  };

  struct Work {
    Task task;
    detail::LoopJob* loop = nullptr;
    explicit operator bool() const noexcept { return task || loop != nullptr; }
  };

  State(int num_threads, const ThreadPoolOptions& pool_options)
      : num_workers(num_threads),
        options(pool_options),
        workers(std::make_unique<Worker[]>(static_cast<std::size_t>(num_threads))) {}

  const int num_workers;
  const ThreadPoolOptions options;
  const std::unique_ptr<Worker[]> workers;
  detail::TaskDeque inbox;

  detail::SpinLock loops_lock;
  detail::LoopJob* newest_loop = nullptr;
  /// Listed loops that may still be joined.
  std::atomic<int> open_loops{0};
  /// Moves when the last thread inside leaves a loop and the caller of the loop is parked.
  std::atomic<std::uint32_t> loops_left{0};

  std::atomic<int> spinning{0};
  std::atomic<int> seats_taken{0};
  std::atomic<bool> is_stopping{false};

  /// Workers beyond this number sit out while outside threads have their seats.
  int num_active() const noexcept { return std::max(1, num_workers - seats_taken.load()); }

  bool has_tasks() const noexcept {
    if (!inbox.is_empty()) return true;
    return std::any_of(workers.get(), workers.get() + num_workers, [](const Worker& w) { return !w.tasks.is_empty(); });
  }
  bool has_work() const noexcept { return open_loops.load() > 0 || has_tasks(); }

  /// Wakes up to `count` parked workers that are not sitting out.
  void wake(int count) noexcept {
    const int active = num_active();
    for (int i = 0; i < active && count > 0; ++i) {
      if (workers[i].is_parked.load() == 0) continue;
      std::uint32_t parked = 1;
      if (workers[i].is_parked.compare_exchange_strong(parked, 0)) {
        wake_one(workers[i].is_parked);
        --count;
      }
    }
  }

  void wake_for_task() noexcept {
    if (spinning.load() == 0) wake(1);
  }

  Work find(int worker) noexcept {
    Work work;
    if (worker >= 0 && (work.task = workers[worker].tasks.pop_back())) return work;
    if ((work.loop = join_loop()) != nullptr) return work;
    if ((work.task = inbox.pop_front())) return work;
    for (int i = 1; i <= num_workers; ++i) {
      if ((work.task = workers[(worker + i + num_workers) % num_workers].tasks.pop_front())) return work;
    }
    return work;
  }

  void run(Work work) noexcept {
    if (work.loop != nullptr) {
      work.loop->work();
      leave_loop(*work.loop);
    } else {
      detail::run_task(work.task);
    }
  }

  void list_loop(detail::LoopJob& loop) noexcept {
    const detail::SpinGuard guard(loops_lock);
    loop.older = newest_loop;
    if (newest_loop != nullptr) newest_loop->newer = &loop;
    newest_loop = &loop;
    loop.is_open = true;
    open_loops.fetch_add(1);
  }

  void close_loop(detail::LoopJob& loop) noexcept {
    if (std::exchange(loop.is_open, false)) open_loops.fetch_sub(1);
  }

  void unlist_loop(detail::LoopJob& loop) noexcept {
    const detail::SpinGuard guard(loops_lock);
    close_loop(loop);
    (loop.newer != nullptr ? loop.newer->older : newest_loop) = loop.older;
    if (loop.older != nullptr) loop.older->newer = loop.newer;
  }

  detail::LoopJob* join_loop() noexcept {
    if (open_loops.load() == 0) return nullptr;
    const detail::SpinGuard guard(loops_lock);
    for (detail::LoopJob* loop = newest_loop; loop != nullptr; loop = loop->older) {
      if (!loop->is_open) continue;
      if (loop->next_shard.load(std::memory_order_relaxed) >= loop->num_shards) {
        close_loop(*loop);
        continue;
      }
      loop->inside.fetch_add(1, std::memory_order_relaxed);
      if (--loop->seats_left == 0) close_loop(*loop);
      return loop;
    }
    return nullptr;
  }

  /// The loop may be gone as soon as the count has dropped.
  void leave_loop(detail::LoopJob& loop) noexcept {
    if (loop.inside.fetch_sub(1, std::memory_order_acq_rel) == (detail::LoopJob::caller_is_parked | 1)) {
      loops_left.fetch_add(1);
      wake_all(loops_left);
    }
  }

  /// Spins for `patience`, then parks: a helper that takes longer than its range should has lost its processor, perhaps
  /// to this very thread.
  void wait_until_left(detail::LoopJob& loop, Duration patience) noexcept {
    if (loop.inside.load(std::memory_order_acquire) == 0) return;
    const auto start = std::chrono::steady_clock::now();
    for (int spins = 0;; ++spins) {
      if (loop.inside.load(std::memory_order_acquire) == 0) return;
      detail::relax_cpu();
      if (spins % 32 == 31 && std::chrono::steady_clock::now() - start > patience) break;
    }
    if (loop.inside.fetch_or(detail::LoopJob::caller_is_parked, std::memory_order_acq_rel) == 0) return;
    while (true) {
      const std::uint32_t seen = loops_left.load();
      if (loop.inside.load(std::memory_order_acquire) == detail::LoopJob::caller_is_parked) return;
      wait_while_equal(loops_left, seen);
    }
  }

  Membership take_seat() noexcept {
    Membership& member = detail::pool_member();
    const Membership outer = member;
    if (outer.pool != this) {
      member = {this, -1};
      seats_taken.fetch_add(1);
    }
    return outer;
  }

  void leave_seat(Membership outer) noexcept {
    if (outer.pool == this) return;
    detail::pool_member() = outer;
    seats_taken.fetch_sub(1);
    // The worker that sat out may have passed over work.
    if (has_work()) wake(1);
  }

  void run_worker(int index) noexcept {
    detail::pool_member() = {this, index};
    detail::name_this_thread(options.name, index);
    Duration patience = options.spin;
    bool was_woken = false;
    while (true) {
      if (index < num_active() || is_stopping.load()) {
        Work work = find(index);
        if (!work) work = spin_for_work(index, patience);
        if (work) {
          // A burst of tasks wakes only one worker. The woken worker wakes the next while there are more tasks.
          if (std::exchange(was_woken, false) && spinning.load() == 0 && has_tasks()) wake(1);
          run(std::move(work));
          patience = options.spin;
          continue;
        }
      }
      if (!park(workers[index], index)) return;
      was_woken = true;
      // If other threads took the work first, this worker soon parks again: it may have pushed one of them aside.
      patience = options.spin / 4;
    }
  }

  /// A worker's ThreadPool::wait. It takes part in all work, also if it is to sit out as a worker that is idle.
  void wait(int index, PoolEvent& event) noexcept {
    Worker& worker = workers[index];
    while (!event.is_set()) {
      Work work = find(index);
      if (!work) work = spin_for_work(index, options.spin, &event);
      if (work) {
        run(std::move(work));
        continue;
      }
      worker.is_parked.store(1);
      PoolEvent::Waiter waiter(worker.is_parked);
      if (!waiter.enlist(event)) break;
      while (!has_work() && worker.is_parked.load() == 1) wait_while_equal(worker.is_parked, 1);
      waiter.withdraw(event);
      worker.is_parked.store(0);
    }
    // It may have been woken for work and not have looked.
    worker.is_parked.store(0);
    if (has_work()) wake(1);
  }

  /// At most all but one spin: the last processor is left to the thread that brings the work.
  Work spin_for_work(int index, Duration patience, const PoolEvent* event = nullptr) noexcept {
    Work work;
    if (patience <= Duration::zero()) return work;
    if (spinning.fetch_add(1) < std::max(1, num_workers - 1)) {
      const auto start = std::chrono::steady_clock::now();
      for (int spins = 0; !is_stopping.load(std::memory_order_relaxed); ++spins) {
        for (int i = 0; i < 8; ++i) detail::relax_cpu();
        if (event != nullptr ? event->is_set() : index >= num_active()) break;
        if ((work = find(index))) break;
        if (spins % 8 == 7 && std::chrono::steady_clock::now() - start > patience) break;
      }
    }
    // A thread that added work while this one was the only spinner woke nobody and relied on it.
    const bool was_last = spinning.fetch_sub(1) == 1;
    if (was_last && (work ? has_tasks() : index >= num_active() && has_work())) wake(1);
    return work;
  }

  /// False if the worker is to end.
  bool park(Worker& worker, int index) noexcept {
    worker.is_parked.store(1);
    if (is_stopping.load()) return has_work();
    if (index < num_active() && has_work()) {
      worker.is_parked.store(0);
      return true;
    }
    while (worker.is_parked.load() == 1) wait_while_equal(worker.is_parked, 1);
    return true;
  }

  void start(const std::shared_ptr<State>& self) {
    for (int i = 0; i < num_workers; ++i) {
      workers[i].thread = std::thread([self, i] { self->run_worker(i); });
    }
  }

  void stop() noexcept {
    is_stopping.store(true);
    for (int i = 0; i < num_workers; ++i) {
      workers[i].is_parked.store(0);
      wake_one(workers[i].is_parked);
    }
    for (int i = 0; i < num_workers; ++i) {
      if (workers[i].thread.joinable()) workers[i].thread.join();
    }
  }
};

WorkStealingPool::WorkStealingPool(int num_threads, ThreadPoolOptions options)
    : ThreadPool(options.min_split_ns), num_threads_(num_threads) {
  if (num_threads < 1 || num_threads > max_threads) {
    throw_error(
        Status::invalid_argument(str_cat("a thread pool of ", num_threads, " threads; 1 to ", max_threads, " can be")));
  }
  const auto fail = [&](const char* why) {
    if (state_ != nullptr) state_->stop();
    throw_error(Status::resource_exhausted(str_cat("cannot start ", num_threads, " threads: ", why)));
  };
  try {
    state_ = std::make_shared<State>(num_threads, options);
    state_->start(state_);
  } catch (const std::system_error& error) {
    fail(error.what());
  } catch (const std::bad_alloc&) {
    fail("out of memory");
  }
}

WorkStealingPool::~WorkStealingPool() {
  const Membership& member = detail::pool_member();
  // A task let go of the last handle: its own worker cannot be joined here, so it ends when the task has returned.
  if (member.pool == state_.get() && member.worker >= 0) state_->workers[member.worker].thread.detach();
  state_->stop();
}

void WorkStealingPool::schedule(Task task) {
  // The task may destroy this pool before this call is over. A worker's own share of the state stays.
  const Membership& member = detail::pool_member();
  if (member.pool == state_.get() && member.worker >= 0) {
    State* const state = state_.get();
    state->workers[member.worker].tasks.push_back(std::move(task));
    state->wake_for_task();
  } else {
    const std::shared_ptr<State> state = state_;
    state->inbox.push_back(std::move(task));
    state->wake_for_task();
  }
}

bool WorkStealingPool::current_thread_is_worker() const noexcept {
  return detail::pool_member().pool == state_.get() && detail::pool_member().worker >= 0;
}

ThreadPool::Membership WorkStealingPool::take_seat() noexcept { return state_->take_seat(); }

void WorkStealingPool::leave_seat(Membership outer) noexcept { state_->leave_seat(outer); }

bool WorkStealingPool::run_one() {
  // The task may destroy this pool.
  const std::shared_ptr<State> state = state_;
  const Membership outer = state->take_seat();
  State::Work work = state->find(detail::pool_member().worker);
  const bool is_found = static_cast<bool>(work);
  if (is_found) state->run(std::move(work));
  state->leave_seat(outer);
  return is_found;
}

void WorkStealingPool::wait(PoolEvent& event) {
  detail::may_block("waiting for an event");
  if (!current_thread_is_worker()) return event.wait_blocking();
  // The worker holds a share of the state itself.
  state_->wait(detail::pool_member().worker, event);
}

void WorkStealingPool::run_shards(std::int64_t total, std::int64_t shard, int participants, double cost_ns,
                                  RangeBody body) {
  const Seat seat(*this);
  detail::LoopJob loop{body, total, shard, (total - 1) / shard + 1, participants - 1};
  state_->list_loop(loop);
  // Spinning workers come by themselves. A parked worker is woken only for a share of 20 us or more, about the cost of
  // waking it.
  const double worth = min_split_ns() <= 0 ? participants : cost_ns / 20'000;
  const auto worth_waking = static_cast<int>(std::min(worth - 1, static_cast<double>(participants - 1)));
  state_->wake(worth_waking - state_->spinning.load());
  loop.work();
  state_->unlist_loop(loop);
  const double patience_ns = std::clamp(2 * cost_ns / static_cast<double>(loop.num_shards), 5e3, 50e3);
  state_->wait_until_left(loop, Duration(static_cast<std::int64_t>(patience_ns)));
  if (loop.error != nullptr) std::rethrow_exception(std::move(loop.error));
}

}  // namespace dflow
