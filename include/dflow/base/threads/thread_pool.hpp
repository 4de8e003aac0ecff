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

/// Where work runs. A kernel, device or session with a pool computes in the pool's threads and makes no threads of its
/// own to compute in.
///
///     pool.parallel_for(rows, 50.0, [&](std::int64_t begin, std::int64_t end) { scale_rows(x, begin, end); });
///
/// Thread safety: all functions may be called from any thread, also from inside a task or a body.
class ThreadPool {
 public:
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  virtual ~ThreadPool();

  /// The largest number of threads that work at once, including a caller inside parallel_for; at least 1.
  virtual int num_threads() const noexcept = 0;

  /// Queues `task`; never blocks. Tasks may run in any order and on any thread of the pool. Errors: bad_alloc if there
  /// is no memory to queue the task; the task is dropped.
  virtual void schedule(Task task) = 0;

  /// Runs one queued task, or helps one loop, in the calling thread, and returns whether there was one. Does not wait.
  /// A thread that waits for the pool's work can take part in it this way.
  virtual bool run_one() { return false; }

  /// Blocks until the event is set. A worker of this pool runs queued tasks and helps loops meanwhile, on its own
  /// stack. It finishes a task that it has begun, even if the event is set before. A task run in this way may destroy
  /// the pool. By default a worker runs queued tasks as long as there are any, then only blocks.
  virtual void wait(PoolEvent& event);

  /// True in a thread that belongs to this pool.
  virtual bool current_thread_is_worker() const noexcept = 0;

  /// The relation of a thread to its pools before it took a seat.
  struct Membership {
    /// The pool that the thread works for or has a seat in, null for none.
    const void* pool = nullptr;
    /// The worker's number, -1 for an outside thread.
    int worker = -1;
  };

  /// While a seat lives, the calling thread counts as one of `num_threads`, and a pool that keeps workers lets one of
  /// them pause. A seat is for an outside thread that does a step's work itself; parallel_for and run_one take a seat
  /// on their own. It has no effect in a worker or in a thread that has a seat. Make and destroy a seat in one thread,
  /// innermost first, and do not hold it over a wait.
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

  /// Covers [0, total) by calls of `body` on disjoint ranges, in the caller and in workers, and returns when all calls
  /// have returned. `cost_ns_per_item` is an estimate of one item's time in nanoseconds: work under `min_split_ns`
  /// stays one call in the caller's thread. Inner boundaries of ranges are multiples of `align`. The pools of dflow
  /// allocate nothing here. The caller works too and waits only for ranges that others have already begun.
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

  /// The lowest cost of waking a parked thread, in nanoseconds.
  static constexpr double default_min_split_ns = 10'000;

 protected:
  explicit ThreadPool(double min_split_ns = default_min_split_ns) noexcept : min_split_ns_(min_split_ns) {}

  /// Runs `body` over [0, total) in ranges of `shard` items (the last may be shorter) with up to `participants`
  /// threads, the caller included. Called with participants >= 2 and more than one range. `cost_ns` estimates the
  /// whole. By default each participant but the caller is a task that `schedule` gets; the call allocates then.
  virtual void run_shards(std::int64_t total, std::int64_t shard, int participants, double cost_ns, RangeBody body);

 private:
  virtual Membership take_seat() noexcept { return {}; }
  virtual void leave_seat(Membership /*outer*/) noexcept {}
  void split(std::int64_t total, double cost_ns, RangeBody body, std::int64_t align);

  double min_split_ns_;
};

struct ThreadPoolOptions {
  /// How long an idle worker looks for work before it parks. Waking a parked worker costs 7 to 40 us.
  Duration spin = std::chrono::microseconds(50);
  /// Prefix of the threads' names, as debuggers show them (cut to 15 characters with the number).
  std::string name = "dflow";
  /// ThreadPool::min_split_ns. For tests: with 0 all loops of more than one block of items are split among all threads,
  /// at any estimated cost, and parked threads are woken for them.
  double min_split_ns = ThreadPool::default_min_split_ns;
};

/// The pool of a session on all cores: `num_threads` workers with a deque each. An idle worker takes tasks from the
/// queue of outside tasks, then steals. An outside thread with a Seat (parallel_for takes one) replaces the last
/// worker. That worker takes no new work meanwhile: a caller and the pool together keep `num_threads` threads busy. A
/// pool of one has one worker beside its callers.
///
/// The destructor runs all queued tasks, then joins the workers. If a worker's task calls it, it joins the other
/// workers, and the calling worker ends when the task has returned. A task that an outside thread runs in run_one may
/// also call it.
/// Errors: the constructor throws InvalidArgument if num_threads is less than 1 or more than `max_threads`,
/// ResourceExhausted if a thread cannot start.
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
/// stack. Deterministic, for simulations and tests of "one thread".
class InlinePool final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return 1; }
  void schedule(Task task) override;
  bool run_one() override;
  /// True inside a task that this pool runs in the calling thread.
  bool current_thread_is_worker() const noexcept override;
};

/// The number of processors that this process may use: its allowed processors, or its control groups' quota if that is
/// less (cpu_quota); at least 1. The number is determined once.
int available_cores() noexcept;

}  // namespace dflow
