#pragma once

#include <dflow/base/unique_function.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace dflow::detail {

/// A double-ended queue of tasks that keeps its memory. Not thread-safe.
class TaskRing {
 public:
  std::size_t size() const noexcept { return size_; }

  void push_back(Task task) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = std::move(task);
    ++size_;
  }

  Task pop_back() noexcept {
    --size_;
    return std::move(slots_[(head_ + size_) & (slots_.size() - 1)]);
  }

  Task pop_front() noexcept {
    Task task = std::move(slots_[head_]);
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
    return task;
  }

 private:
  void grow() {
    std::vector<Task> larger(slots_.empty() ? 64 : slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[(head_ + i) & (slots_.size() - 1)]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  /// A power of two of them, or none.
  std::vector<Task> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

/// An exception that leaves a task ends the process here.
inline void run_task(Task& task) noexcept { task(); }

}  // namespace dflow::detail
