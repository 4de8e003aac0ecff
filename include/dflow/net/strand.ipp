#pragma once

#include <dflow/net/strand.hpp>

#include <utility>

namespace dflow::net {

DFLOW_INLINE void Strand::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (std::exchange(is_running_, true)) return;
  }
  try {
    pool_->schedule([self = shared_from_this()] { self->run(); });
  } catch (...) {
    std::deque<Task> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
    is_running_ = false;
    throw;
  }
}

/// Until there is nothing left: a task that posts another goes on here.
DFLOW_INLINE void Strand::run() {
  for (;;) {
    Task task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) {
        is_running_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace dflow::net
