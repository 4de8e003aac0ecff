#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace dflow {

class Step;

/// A unit of a step that has nothing left to wait for.
struct ReadyUnit {
  Step* step = nullptr;
  UnitId unit;
  bool is_async = false;
  bool is_expensive = false;
  bool is_brief = false;
};

/// Units that one unit has made ready, a few at a time.
class MadeUnits {
 public:
  bool is_full() const noexcept { return size_ == units_.size(); }
  void push_back(const ReadyUnit& unit) noexcept { units_[size_++] = unit; }
  void clear() noexcept { size_ = 0; }
  std::span<const ReadyUnit> all() const noexcept { return {units_.data(), size_}; }

 private:
  std::array<ReadyUnit, 16> units_;
  std::size_t size_ = 0;
};

/// The ready units of all parts of a step that run in this process, and the threads that run them. The threads are the
/// thread that waits for the step, and as many helpers from the pool as there are expensive units, up to the pool's
/// number of threads.
///
/// - Asynchronous units always come first, so that waiting starts before computing. They keep the order in which they
///   became ready, so that tensors that a step needs first are received first.
/// - A unit that comes from a foreign thread (a clock's, a socket's) is not run there. There are three exceptions: the
///   pool runs everything in place, there is no memory for a task that would run the unit elsewhere, or the queue is
///   told to run brief units there. A step over many tasks consists mostly of brief units, and waking a thread for
///   each costs more than they do. A brief unit that would wait there, as for a long update of a variable, goes on in
///   the pool.
/// - A unit that was made ready by the one before it goes on in the same thread without a lock.
///
/// Thread safety: all functions may be called from any thread.
class UnitQueue : public std::enable_shared_from_this<UnitQueue> {
 public:
  /// Room for `max_units` at once is taken now, so that nothing can fail while units run.
  explicit UnitQueue(ThreadPool& pool, std::size_t max_units = 0, bool runs_brief_in_place = false)
      : pool_(pool), runs_brief_in_place_(runs_brief_in_place) {
    async_.reserve(max_units);
    work_.reserve(max_units);
  }

  ThreadPool& pool() const noexcept { return pool_; }

  void push(std::span<const ReadyUnit> units);

  /// The calling thread is about to call `run_until_woken`: it replaces one helper for the units that are pushed until
  /// then.
  void expect_caller();
  /// Runs units in the calling thread until `wake` was called and nothing is ready. A thread of the pool helps the
  /// pool while nothing is ready here, so that runs inside of tasks cannot exhaust it.
  void run_until_woken();
  /// Ends `run_until_woken`: called once for each call of it, before, while or after it waits.
  void wake();

 private:
  void drain(bool is_helper);
  void drain_brief(std::unique_lock<std::mutex>& lock);
  bool is_all_brief() const noexcept { return !any_async() && lengthy_ == 0 && !work_.empty(); }
  /// With the mutex held: the number of helpers to schedule for the ready units.
  int helpers_wanted(bool pusher_goes_on) noexcept;
  void append(std::span<const ReadyUnit> units);
  void append_async(const ReadyUnit& unit);
  ReadyUnit pop() noexcept;
  ReadyUnit pop_async() noexcept;
  bool any_async() const noexcept { return async_begun_ < async_.size(); }
  bool is_empty() const noexcept { return !any_async() && work_.empty(); }
  void schedule_helpers(int count);

  ThreadPool& pool_;
  const bool runs_brief_in_place_;
  std::mutex mutex_;
  std::vector<ReadyUnit> async_;  ///< in their order; the first `async_begun_` of them have begun
  std::size_t async_begun_ = 0;
  std::vector<ReadyUnit> work_;
  std::atomic<bool> async_waits_{false};
  int expensive_ = 0;              ///< of `work_`
  int lengthy_ = 0;                ///< of `work_`: the units that are not brief
  int drainers_ = 0;               ///< threads that run units
  int coming_ = 0;                 ///< helpers that are scheduled and have not begun
  PoolEvent* caller_ = nullptr;    ///< the event that the caller waits for
  bool caller_is_called_ = false;  ///< for units: it counts as a drainer then
  bool caller_is_expected_ = false;
  bool woken_ = false;
};

}  // namespace dflow
