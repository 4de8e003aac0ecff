#pragma once

#include <dflow/base/config.hpp>

#include <atomic>
#include <cstdint>

namespace dflow {

/// An event that happens once. A thread waits for it in ThreadPool::wait, so that a worker goes on working.
///
///     PoolEvent finished;
///     start(work, [&] { finished.set(); });
///     pool.wait(finished);
///
/// Thread safety: set() may be called from any thread, once; one thread waits at a time. The event may be destroyed as
/// soon as wait() has returned, also while set() is about to return.
class PoolEvent {
 public:
  PoolEvent() noexcept = default;
  PoolEvent(const PoolEvent&) = delete;
  PoolEvent& operator=(const PoolEvent&) = delete;

  /// Never blocks. Everything before this call happens before wait() returns.
  void set() noexcept;
  bool is_set() const noexcept { return waiter_.load(std::memory_order_acquire) == happened(); }

  /// Blocks the calling thread until the event is set, also if its pool has work to do.
  void wait_blocking() noexcept;

  /// For pools: parks a thread on a word of its own. Others can wake the thread there for other reasons too.
  class Waiter {
   public:
    /// The word is 1 while the thread is parked: a thread that sets it to 0 wakes the parked thread by wake_one.
    explicit Waiter(std::atomic<std::uint32_t>& word) noexcept : word_(word) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// From now on set() stores 0 in the word and wakes. False if the event is set already.
    bool enlist(PoolEvent& event) noexcept;
    /// After enlist() only: from now on set() does nothing to the word. Waits for a set() that is just doing it.
    void withdraw(PoolEvent& event) noexcept;

   private:
    friend class PoolEvent;
    std::atomic<std::uint32_t>& word_;
    std::atomic<bool> is_told_{false};
  };

 private:
  /// Stands for "it has happened"; no waiter lies there.
  Waiter* happened() const noexcept { return reinterpret_cast<Waiter*>(const_cast<std::atomic<Waiter*>*>(&waiter_)); }

  /// Null, the thread that waits, or happened().
  std::atomic<Waiter*> waiter_{nullptr};
};

}  // namespace dflow
