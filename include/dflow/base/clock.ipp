#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace dflow {
namespace detail {

/// Pending timers in order of time, then of scheduling. Not thread-safe.
class TimerQueue {
 public:
  TimerId add(Clock::time_point time, UniqueFunction<void()> callback) {
    const std::uint64_t id = ++last_id_;
    const auto at = times_.emplace(id, time).first;
    try {
      timers_.emplace(std::pair(time, id), std::move(callback));
    } catch (...) {
      times_.erase(at);
      throw;
    }
    return TimerId{id};
  }

  bool remove(TimerId timer, UniqueFunction<void()>& removed) {
    const auto id = static_cast<std::uint64_t>(timer);
    const auto found = times_.find(id);
    if (found == times_.end()) return false;
    const auto entry = timers_.find(std::pair(found->second, id));
    removed = std::move(entry->second);
    timers_.erase(entry);
    times_.erase(found);
    return true;
  }

  Clock::time_point next() const { return timers_.empty() ? Clock::never : timers_.begin()->first.first; }
  bool empty() const { return timers_.empty(); }

  UniqueFunction<void()> take_first() {
    const auto first = timers_.begin();
    UniqueFunction<void()> callback = std::move(first->second);
    times_.erase(first->first.second);
    timers_.erase(first);
    return callback;
  }

 private:
  std::map<std::pair<Clock::time_point, std::uint64_t>, UniqueFunction<void()>> timers_;
  std::map<std::uint64_t, Clock::time_point> times_;
  std::uint64_t last_id_ = 0;
};

Clock::time_point saturated(Clock::time_point time, Duration delay) {
  if (delay > Duration::zero() && time.time_since_epoch() > Duration::max() - delay) return Clock::never;
  return time + delay;
}

}  // namespace detail

Clock::~Clock() = default;

Clock::time_point Clock::after(Duration delay) const { return detail::saturated(now(), delay); }

TimerId Clock::schedule_after(Duration delay, UniqueFunction<void()> callback) {
  return schedule_at(after(delay), std::move(callback));
}

struct RealClock::State {
  std::mutex mutex;
  std::condition_variable changed;
  detail::TimerQueue timers;
  bool stopping = false;
  bool is_orphaned = false;  ///< destroyed by one of its own callbacks: the timer thread deletes this state
  std::thread thread;

  void run() {
    const detail::ReactorThread reactor;
    std::unique_lock lock(mutex);
    while (!stopping) {
      const Clock::time_point next = timers.next();
      if (next == Clock::never) {
        changed.wait(lock);
        continue;
      }
      const std::chrono::steady_clock::time_point due(next.time_since_epoch());
      if (std::chrono::steady_clock::now() < due) {
        changed.wait_until(lock, due);
        continue;
      }
      UniqueFunction<void()> callback = timers.take_first();
      lock.unlock();
      [&]() noexcept { callback(); }();
      callback = nullptr;
      lock.lock();
    }
  }
};

RealClock::RealClock() : state_(new State) {}

RealClock::~RealClock() {
  const bool in_callback = state_->thread.get_id() == std::this_thread::get_id();
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->is_orphaned = in_callback;
  }
  if (in_callback) {
    state_->thread.detach();
    return;
  }
  state_->changed.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
  delete state_;
}

Clock::time_point RealClock::now() const {
  return time_point(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

Clock::wall_time_point RealClock::wall_now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

TimerId RealClock::schedule_at(time_point time, UniqueFunction<void()> callback) {
  TimerId id{};
  bool is_first = false;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->thread.joinable()) {
      try {
        state_->thread = std::thread([state = state_] {
          state->run();
          if (state->is_orphaned) delete state;
        });
      } catch (const std::system_error& error) {
        throw_error(Status::resource_exhausted(str_cat("cannot start the clock's thread: ", error.what())));
      }
    }
    id = state_->timers.add(time, std::move(callback));
    is_first = state_->timers.next() == time;
  }
  if (is_first) state_->changed.notify_one();
  return id;
}

bool RealClock::cancel(TimerId id) {
  UniqueFunction<void()> removed;
  std::lock_guard lock(state_->mutex);
  return state_->timers.remove(id, removed);
}

struct VirtualClock::State {
  mutable std::mutex mutex;
  detail::TimerQueue timers;
  time_point now{};
  wall_time_point wall_start{};
};

VirtualClock::VirtualClock(Duration wall_start) : state_(new State) {
  state_->wall_start = wall_time_point(wall_start);
}

VirtualClock::~VirtualClock() { delete state_; }

Clock::time_point VirtualClock::now() const {
  std::lock_guard lock(state_->mutex);
  return state_->now;
}

Clock::wall_time_point VirtualClock::wall_now() const { return state_->wall_start + now().time_since_epoch(); }

TimerId VirtualClock::schedule_at(time_point time, UniqueFunction<void()> callback) {
  std::lock_guard lock(state_->mutex);
  return state_->timers.add(time < state_->now ? state_->now : time, std::move(callback));
}

bool VirtualClock::cancel(TimerId id) {
  UniqueFunction<void()> removed;
  std::lock_guard lock(state_->mutex);
  return state_->timers.remove(id, removed);
}

Clock::time_point VirtualClock::next_deadline() const {
  std::lock_guard lock(state_->mutex);
  return state_->timers.next();
}

void VirtualClock::advance(Duration by) {
  std::unique_lock lock(state_->mutex);
  const time_point target = detail::saturated(state_->now, by);
  while (!state_->timers.empty() && state_->timers.next() <= target) {
    if (state_->now < state_->timers.next()) state_->now = state_->timers.next();
    UniqueFunction<void()> callback = state_->timers.take_first();
    lock.unlock();
    callback();
    callback = nullptr;
    lock.lock();
  }
  if (state_->now < target) state_->now = target;
}

bool VirtualClock::advance_to_next() {
  std::unique_lock lock(state_->mutex);
  if (state_->timers.empty()) return false;
  if (state_->now < state_->timers.next()) state_->now = state_->timers.next();
  UniqueFunction<void()> callback = state_->timers.take_first();
  lock.unlock();
  callback();
  return true;
}

}  // namespace dflow
