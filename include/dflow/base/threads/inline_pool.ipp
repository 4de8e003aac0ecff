#pragma once

#include <dflow/base/threads/task_ring.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include <utility>

namespace dflow {
namespace detail {

/// One outermost InlinePool::schedule of a thread, on its stack, and the tasks that were scheduled meanwhile.
struct InlineFrame {
  const InlinePool* pool;
  InlineFrame* outer;
  TaskRing queued;
};

InlineFrame*& innermost_inline_frame() noexcept {
  static constinit thread_local InlineFrame* frame = nullptr;
  return frame;
}

InlineFrame* inline_frame_of(const InlinePool* pool) noexcept {
  InlineFrame* frame = innermost_inline_frame();
  while (frame != nullptr && frame->pool != pool) frame = frame->outer;
  return frame;
}

}  // namespace detail

void InlinePool::schedule(Task task) {
  if (detail::InlineFrame* frame = detail::inline_frame_of(this)) {
    frame->queued.push_back(std::move(task));
    return;
  }
  detail::InlineFrame frame{this, detail::innermost_inline_frame(), {}};
  detail::innermost_inline_frame() = &frame;
  detail::run_task(task);
  task = nullptr;
  while (run_one()) {
  }
  detail::innermost_inline_frame() = frame.outer;
}

bool InlinePool::run_one() {
  detail::InlineFrame* frame = detail::inline_frame_of(this);
  if (frame == nullptr || frame->queued.size() == 0) return false;
  Task task = frame->queued.pop_front();
  detail::run_task(task);
  return true;
}

bool InlinePool::current_thread_is_worker() const noexcept { return detail::inline_frame_of(this) != nullptr; }

}  // namespace dflow
