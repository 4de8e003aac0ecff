#pragma once

/// Public: the clock that timeouts read, and a clock for tests.

#include <dflow/base/config.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/unique_function.hpp>

#include <cstdint>

namespace dflow {

/// Names one scheduled timer of one clock; 0 names none.
enum class TimerId : std::uint64_t {};

/// Time and timers, passed in wherever deadlines, heartbeats or delays are needed, so that a test or a simulation can
/// replace them by a VirtualClock.
///
/// Thread safety: all functions may be called from any thread, also from inside a timer's callback.
class Clock {
 public:
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, Duration>;
  using wall_time_point = std::chrono::time_point<std::chrono::system_clock, Duration>;
  static constexpr bool is_steady = true;
  static constexpr time_point never = time_point::max();

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock();

  /// Steady time; its zero means nothing.
  virtual time_point now() const = 0;
  /// Calendar time since 1970 (UTC); may jump.
  virtual wall_time_point wall_now() const = 0;

  /// Calls `callback` once when now() has reached `time`; at once if it already has, but never inside this call.
  /// The callback runs on the clock's own thread, must be short and must not throw.
  virtual TimerId schedule_at(time_point time, UniqueFunction<void()> callback) = 0;
  /// Forgets the timer; true if its callback had not begun and now never will. Does not wait for a running callback.
  virtual bool cancel(TimerId id) = 0;

  TimerId schedule_after(Duration delay, UniqueFunction<void()> callback);
  /// now() + delay, or `never` if the sum overflows.
  time_point after(Duration delay) const;
};

/// The machine's clocks. Its one timer thread starts with the first schedule_at. The destructor drops timers that are
/// not due and waits for a callback that runs; it must not be called from a callback.
class RealClock final : public Clock {
 public:
  RealClock();
  ~RealClock() override;

  time_point now() const override;
  wall_time_point wall_now() const override;
  TimerId schedule_at(time_point time, UniqueFunction<void()> callback) override;
  bool cancel(TimerId id) override;

 private:
  struct State;
  State* state_;
};

/// A clock that stands still until it is told to move. Callbacks run in the thread that calls advance, in order of
/// their time and, for equal times, of their scheduling, with now() at the scheduled time of each.
class VirtualClock final : public Clock {
 public:
  /// Steady time starts at 0, calendar time at `wall_start` after 1970.
  explicit VirtualClock(Duration wall_start = std::chrono::seconds(1'700'000'000));
  ~VirtualClock() override;

  time_point now() const override;
  wall_time_point wall_now() const override;
  TimerId schedule_at(time_point time, UniqueFunction<void()> callback) override;
  bool cancel(TimerId id) override;

  /// Moves time forward and runs all timers that fall due on the way, including the timers that their callbacks
  /// schedule.
  void advance(Duration by);
  /// Moves to the earliest timer and runs it alone; false if there is none.
  bool advance_to_next();
  /// The earliest timer's time, Clock::never if there is none.
  time_point next_deadline() const;

 private:
  struct State;
  State* state_;
};

}  // namespace dflow
