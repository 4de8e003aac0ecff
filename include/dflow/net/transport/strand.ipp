#pragma once

#include <dflow/net/transport/strand.hpp>

#include <utility>

namespace dflow::net {

void Strand::post(Task task) {
  std::list<Task> one, dropped;
  one.push_back(std::move(task));
  {
    const std::lock_guard lock(mutex_);
    tasks_.splice(tasks_.end(), one);
    if (std::exchange(is_running_, true)) return;
  }
  try {
    pool_->schedule([self = shared_from_this()] { self->run(); });
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      dropped.splice(dropped.end(), tasks_);
      is_running_ = false;
    }
    throw;
  }
}

void Strand::run() {
  constexpr int turn = 32;
  for (int i = 0;; ++i) {
    std::list<Task> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) {
        is_running_ = false;
        return;
      }
      if (i < turn) task.splice(task.end(), tasks_, tasks_.begin());
    }
    if (!task.empty()) {
      task.front()();
      continue;
    }
    try {
      return pool_->schedule([self = shared_from_this()] { self->run(); });
    } catch (...) {  // no memory to stand aside with
      i = -1;
    }
  }
}

}  // namespace dflow::net
