#pragma once

#include <dflow/base/threads/thread_pool.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace dflow {

struct ElasticPoolOptions {
  /// No more threads than this work at once; further tasks wait for one of them.
  int max_threads = 64;
  /// A thread that has had nothing to do for so long ends.
  Duration idle = std::chrono::seconds(10);
  /// Prefix of the threads' names, as debuggers show them (cut to 15 characters with the number).
  std::string name = "dflow-elastic";
};

/// Threads for tasks that may block, such as users' callbacks. A thread is started if there is a task and no idle
/// thread, up to a limit, and ends when it is idle. The pool has no thread before its first task. Tasks start in the
/// order they were scheduled: with `max_threads` 1 each also ends before the next one starts.
///
/// It is not for computing: parallel_for is one call in the caller, and wait() blocks also in a thread of the pool,
/// which keeps it from other tasks.
///
/// The destructor runs all queued tasks, then joins. If a task of the pool calls it, it joins the other threads; that
/// task's thread runs the remaining tasks and ends when the task has returned. A task that an outside thread runs in
/// run_one may call it too.
///
/// Thread safety: as ThreadPool.
/// Errors: the constructor throws InvalidArgument if max_threads is less than 1 or more than
/// WorkStealingPool::max_threads. schedule throws ResourceExhausted, and drops the task, if there is no thread at all
/// and none can be started; as long as there is one, the task waits for it.
class ElasticPool final : public ThreadPool {
 public:
  explicit ElasticPool(ElasticPoolOptions options = {});
  ~ElasticPool() override;

  /// The limit, not the number of threads at the moment.
  int num_threads() const noexcept override;
  void schedule(Task task) override;
  bool run_one() override;
  void wait(PoolEvent& event) override;
  bool current_thread_is_worker() const noexcept override;

  /// How many threads there are; stale as soon as it is read.
  int num_threads_now() const noexcept;

 private:
  struct State;
  void run_shards(std::int64_t total, std::int64_t shard, int participants, double cost_ns, RangeBody body) override;

  std::shared_ptr<State> state_;  ///< shared with the threads
};

}  // namespace dflow
