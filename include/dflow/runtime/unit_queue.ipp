#pragma once

#include <dflow/runtime/step.hpp>
#include <dflow/runtime/unit_queue.hpp>

#include <algorithm>
#include <utility>

namespace dflow {

namespace detail {

/// The queue whose units the calling thread runs.
UnitQueue*& current_unit_queue() noexcept {
  static constinit thread_local UnitQueue* queue = nullptr;
  return queue;
}

}  // namespace detail

void UnitQueue::append(std::span<const ReadyUnit> units) {
  for (const ReadyUnit& unit : units) {
    if (unit.is_async) {
      append_async(unit);
    } else {
      work_.push_back(unit);
    }
    expensive_ += !unit.is_async && unit.is_expensive ? 1 : 0;
    lengthy_ += !unit.is_async && !unit.is_brief ? 1 : 0;
  }
  if (any_async()) async_waits_.store(true, std::memory_order_relaxed);
}

/// Units that have begun make room before memory is asked for, once they are half of all: each unit is moved a few
/// times at most.
void UnitQueue::append_async(const ReadyUnit& unit) {
  if (async_.size() == async_.capacity() && async_begun_ >= async_.size() / 2) {
    async_.erase(async_.begin(), async_.begin() + static_cast<std::ptrdiff_t>(async_begun_));
    async_begun_ = 0;
  }
  async_.push_back(unit);
}

ReadyUnit UnitQueue::pop_async() noexcept {
  const ReadyUnit unit = async_[async_begun_++];
  if (!any_async()) {
    async_.clear();
    async_begun_ = 0;
    async_waits_.store(false, std::memory_order_relaxed);
  }
  return unit;
}

ReadyUnit UnitQueue::pop() noexcept {
  if (any_async()) return pop_async();
  const ReadyUnit unit = work_.back();
  work_.pop_back();
  expensive_ -= unit.is_expensive ? 1 : 0;
  lengthy_ -= unit.is_brief ? 0 : 1;
  return unit;
}

/// One thread for each expensive unit, and one for all cheap units. A waiting caller is always called before helpers
/// are considered: scheduled helpers may be behind other work of the pool for long.
int UnitQueue::helpers_wanted(bool pusher_goes_on) noexcept {
  if (is_empty()) return 0;
  const bool any_cheap = any_async() || static_cast<int>(work_.size()) > expensive_;
  int wanted = expensive_ + (any_cheap && expensive_ == 0 ? 1 : 0) - (pusher_goes_on ? 1 : 0);
  if (wanted <= 0) return 0;
  if (caller_ != nullptr) {
    caller_is_called_ = true;
    ++drainers_;
    --wanted;
    std::exchange(caller_, nullptr)->set();
  }
  wanted -= (caller_is_expected_ ? 1 : 0) + coming_;
  return std::clamp(wanted, 0, std::max(0, pool_.num_threads() - drainers_ - coming_));
}

void UnitQueue::schedule_helpers(int count) {
  for (; count > 0; --count) {
    try {
      pool_.schedule([self = shared_from_this()] { self->drain(true); });
    } catch (...) {
      // No thread for a helper, or no memory: its work is done here.
      drain(true);
    }
  }
}

void UnitQueue::push(std::span<const ReadyUnit> units) {
  if (units.empty()) return;
  int helpers = 0;
  {
    std::unique_lock lock(mutex_);
    append(units);
    const bool goes_on = detail::current_unit_queue() == this;
    if (!goes_on && runs_brief_in_place_ && is_all_brief()) return drain_brief(lock);
    helpers = helpers_wanted(goes_on);
    coming_ += helpers;
  }
  schedule_helpers(helpers);
}

/// Runs brief units in a foreign thread, and leaves the other units to other threads.
void UnitQueue::drain_brief(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<UnitQueue> keep = shared_from_this();
  UnitQueue* const outer = std::exchange(detail::current_unit_queue(), this);
  MadeUnits made;
  ++drainers_;
  while (is_all_brief()) {
    const ReadyUnit unit = pop();
    lock.unlock();
    made.clear();
    unit.step->run_unit(unit.unit, made, false);
    lock.lock();
    append(made.all());
  }
  --drainers_;
  const int helpers = helpers_wanted(false);
  coming_ += helpers;
  lock.unlock();
  detail::current_unit_queue() = outer;
  schedule_helpers(helpers);
}

/// A thread that is not a helper is counted among `drainers_` already.
void UnitQueue::drain(bool is_helper) {
  const std::shared_ptr<UnitQueue> keep = shared_from_this();
  UnitQueue* const outer = std::exchange(detail::current_unit_queue(), this);
  MadeUnits made;
  std::unique_lock lock(mutex_);
  if (is_helper) {
    --coming_;
    ++drainers_;
  }
  while (!is_empty()) {
    ReadyUnit unit = pop();
    lock.unlock();
    for (;;) {
      made.clear();
      unit.step->run_unit(unit.unit, made);
      if (made.all().size() != 1 || made.all()[0].is_async || async_waits_.load(std::memory_order_relaxed)) break;
      unit = made.all()[0];
    }
    lock.lock();
    if (made.all().empty()) continue;
    append(made.all());
    const int helpers = helpers_wanted(true);
    if (helpers == 0) continue;
    coming_ += helpers;
    lock.unlock();
    schedule_helpers(helpers);
    lock.lock();
  }
  --drainers_;
  lock.unlock();
  detail::current_unit_queue() = outer;
}

void UnitQueue::expect_caller() {
  const std::lock_guard lock(mutex_);
  caller_is_expected_ = true;
}

void UnitQueue::run_until_woken() {
  // While this thread waits it may run other tasks of the pool. It does not go on now with the units of the queue
  // whose kernel it is in.
  UnitQueue* const outer = std::exchange(detail::current_unit_queue(), nullptr);
  std::unique_lock lock(mutex_);
  caller_is_expected_ = false;
  for (;;) {
    if (!is_empty() || caller_is_called_) {
      if (!std::exchange(caller_is_called_, false)) ++drainers_;
      lock.unlock();
      {
        const ThreadPool::Seat seat(pool_);
        drain(false);
      }
      lock.lock();
      continue;
    }
    if (woken_) break;
    PoolEvent event;
    caller_ = &event;
    lock.unlock();
    pool_.wait(event);
    lock.lock();
  }
  woken_ = false;
  lock.unlock();
  detail::current_unit_queue() = outer;
}

void UnitQueue::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  if (caller_ != nullptr) std::exchange(caller_, nullptr)->set();
}

}  // namespace dflow
