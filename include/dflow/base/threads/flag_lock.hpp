#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace dflow::detail {

/// A lock that may be held for long. One thread may hold hundreds of them: ThreadSanitizer ends a program if a thread
/// holds more than 64 mutexes.
///
/// Thread safety: safe. Not recursive.
class FlagLock {
 public:
  FlagLock() = default;
  FlagLock(const FlagLock&) = delete;
  FlagLock& operator=(const FlagLock&) = delete;

  bool try_lock() noexcept { return !held_.exchange(true); }
  void lock() {
    if (try_lock()) return;
    std::unique_lock lock(mutex_);
    ++num_waiting_;
    freed_.wait(lock, [this] { return try_lock(); });
    --num_waiting_;
  }
  void unlock() noexcept {
    held_.store(false);
    // A waiter that counted itself before this looks at the flag after it.
    if (num_waiting_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }
    freed_.notify_one();
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<int> num_waiting_{0};
  std::mutex mutex_;
  std::condition_variable freed_;
};

}  // namespace dflow::detail
