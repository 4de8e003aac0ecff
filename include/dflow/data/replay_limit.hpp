#pragma once

#include <dflow/base/config.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace dflow::data {

/// Bounds the number of elements that are read again to restore a state. All passes of one iterator share it: their
/// sources count the elements that they read. An element past the bound is an error in the thread that reads it.
/// Nothing is counted at other times.
///
/// Thread safety: safe.
class ReplayLimit {
 public:
  /// Begins to count: from here on at most `most` elements.
  void begin(std::uint64_t most);
  /// Stops counting. Errors: InvalidArgument if more were asked for, even if only a read-ahead thread got the error.
  void end();
  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  /// Errors: InvalidArgument past the bound.
  void count(std::uint64_t elements = 1) {
    if (is_on()) count_more(elements);
  }

 private:
  friend class LentReplayLimit;

  void count_more(std::uint64_t elements);

  std::atomic<bool> is_on_{false};
  std::atomic<std::uint64_t> left_{0};
  std::mutex mutex_;  ///< guards the members below, and changes of `is_on_`
  std::uint64_t most_ = 0;
  bool is_exceeded_ = false;
  ReplayLimit* lender_ = nullptr;  ///< counts instead
};

/// For passes that several iterators use in turn: while this lives, `borrower` counts for `lender`, if `lender` is on.
class LentReplayLimit {
 public:
  LentReplayLimit(ReplayLimit& borrower, ReplayLimit& lender);
  LentReplayLimit(const LentReplayLimit&) = delete;
  LentReplayLimit& operator=(const LentReplayLimit&) = delete;
  ~LentReplayLimit();

  /// True if a pass of the borrower may have been told that the bound is passed.
  bool is_exceeded() const;

 private:
  ReplayLimit& borrower_;
};

}  // namespace dflow::data
