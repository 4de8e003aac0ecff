#pragma once

/// Public: the thread pools that kernels and steps run on.

#include <dflow/base/config.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/unique_function.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow {

/// Runs `body(begin, end)` over disjoint ranges.
using RangeBody = FunctionRef<void(std::int64_t begin, std::int64_t end)>;

/// Where work runs. What is given one, a kernel, device or session, computes in its threads and makes none to compute
/// in.
///
///     pool.parallel_for(rows, 50.0, [&](std::int64_t begin, std::int64_t end) { scale_rows(x, begin, end); });
///
/// Thread safety: all functions may be called from any thread, also from inside a task or a body.
class ThreadPool {
 public:
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  virtual ~ThreadPool();

  /// How many threads work at once at most, a caller inside parallel_for counted; at least 1.
  virtual int num_threads() const noexcept = 0;

  /// Queues `task`; never blocks. Tasks may run in any order and on any thread of the pool. Errors: bad_alloc if there
  /// is no memory to queue it, and the task is dropped.
  virtual void schedule(Task task) = 0;

  /// Runs one queued task, or helps one loop, in the calling thread, and says whether there was one; does not wait.
  /// Lets a thread that waits for the pool's work take part in it.
  virtual bool run_one() { return false; }

  /// Blocks until the event is set. A worker of this pool runs queued tasks and helps loops meanwhile, on its own
  /// stack: a task that it takes up is finished first, even if the event is set before that. The pool may be destroyed
  /// meanwhile by such a task. The default runs queued tasks as long as there are any, then blocks plainly.
  virtual void wait(PoolEvent& event);

  /// True in a thread that belongs to this pool.
  virtual bool current_thread_is_worker() const noexcept = 0;

  /// What a thread was to its pools before it took a seat.
  struct Membership {
    /// The pool whose worker it is or in which it has a seat, null for none.
    const void* pool = nullptr;
    /// The worker's number, -1 for an outside thread.
    int worker = -1;
  };

  /// While it lives, the calling thread counts as one of `num_threads`, and a pool that keeps workers lets one of them
  /// sit out. For an outside thread that does a step's work itself; parallel_for and run_one take a seat on their own.
  /// No effect in a worker or in a thread that has a seat. Taken and left in one thread, innermost first; not to be
  /// held over a wait.
  class [[nodiscard]] Seat {
   public:
    explicit Seat(ThreadPool& pool) noexcept : pool_(pool), outer_(pool.take_seat()) {}
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() { pool_.leave_seat(outer_); }

   private:
    ThreadPool& pool_;
    Membership outer_;
  };

  /// Covers [0, total) by calls of `body` on disjoint ranges, in the caller and in workers, and returns when all have
  /// returned. `cost_ns_per_item` is an estimate of one item's time in nanoseconds: work under `min_split_ns` stays
  /// one call in the caller's thread. Inner boundaries of ranges are multiples of `align`. Allocates nothing.
  /// The caller works too and waits only for ranges that others have already begun.
  ///
  /// Errors: if bodies throw, ranges not yet begun are skipped and the first exception is rethrown here.
  void parallel_for(std::int64_t total, double cost_ns_per_item, RangeBody body, std::int64_t align = 1) {
    if (total <= 0) return;
    const double cost_ns = static_cast<double>(total) * cost_ns_per_item;
    if (total <= align || !(cost_ns >= min_split_ns_) || num_threads() == 1) {
      body(0, total);
      return;
    }
    split(total, cost_ns, body, align);
  }

  /// Work estimated below so many nanoseconds is never split.
  double min_split_ns() const noexcept { return min_split_ns_; }

  /// What a wake-up of a parked thread costs at its best.
  static constexpr double default_min_split_ns = 10'000;

 protected:
  explicit ThreadPool(double min_split_ns = default_min_split_ns) noexcept : min_split_ns_(min_split_ns) {}

  /// Runs `body` over [0, total) in ranges of `shard` items (the last may be shorter) with up to `participants`
  /// threads, the caller included. Called with participants >= 2 and more than one range. `cost_ns` estimates the
  /// whole. The default runs the ranges one after the other in the caller.
  virtual void run_shards(std::int64_t total, std::int64_t shard, int participants, double cost_ns, RangeBody body);

 private:
  virtual Membership take_seat() noexcept { return {}; }
  virtual void leave_seat(Membership /*outer*/) noexcept {}
  void split(std::int64_t total, double cost_ns, RangeBody body, std::int64_t align);

  double min_split_ns_;
};

struct ThreadPoolOptions {
  /// How long an idle worker looks for work before it parks. Waking a parked one costs 7 to 40 us.
  Duration spin = std::chrono::microseconds(50);
  /// Prefix of the threads' names, as debuggers show them (cut to 15 characters with the number).
  std::string name = "dflow";
  /// ThreadPool::min_split_ns. With 0 all loops of more than one block of items are split among all threads, whatever
  /// their cost, and parked ones are woken for them: for tests.
  double min_split_ns = ThreadPool::default_min_split_ns;
};

/// The pool of a session on all cores: `num_threads` workers with a deque each; an idle one takes from the queue of
/// tasks that came from outside, then steals. An outside thread with a Seat (parallel_for takes one) stands in for the
/// last worker, which takes no new work meanwhile, so that a caller and the pool together keep `num_threads` threads
/// busy. A pool of one has one worker beside its callers.
///
/// The destructor runs all queued tasks, then joins. Called by a worker's task it joins the others, and that worker
/// ends when the task has returned. It may also be called by a task that an outside thread runs in run_one. Errors: the
/// constructor throws InvalidArgument if num_threads is less than 1 or more than `max_threads`, ResourceExhausted if
/// a thread cannot start.
class WorkStealingPool final : public ThreadPool {
 public:
  static constexpr int max_threads = 4096;

  explicit WorkStealingPool(int num_threads, ThreadPoolOptions options = {});
  ~WorkStealingPool() override;

  int num_threads() const noexcept override { return num_threads_; }
  void schedule(Task task) override;
  bool run_one() override;
  void wait(PoolEvent& event) override;
  bool current_thread_is_worker() const noexcept override;

 private:
  struct State;
  Membership take_seat() noexcept override;
  void leave_seat(Membership outer) noexcept override;
  void run_shards(std::int64_t total, std::int64_t shard, int participants, double cost_ns, RangeBody body) override;

  int num_threads_;
  std::shared_ptr<State> state_;  ///< shared with the threads
};

/// No threads at all: schedule() runs the task in the caller before it returns, and parallel_for is one call. A task
/// scheduled from inside a task is queued and run by the outermost schedule(), so chains of any length use constant
/// stack. Deterministic; what simulations and tests of "one thread" use.
class InlinePool final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return 1; }
  void schedule(Task task) override;
  bool run_one() override;
  /// True inside a task that this pool runs in the calling thread.
  bool current_thread_is_worker() const noexcept override;
};

/// The number of processors this process may use: those it may run on, or its control groups' quota if that is less
/// (cpu_quota); at least 1. It is found out once.
int available_cores() noexcept;

}  // namespace dflow
