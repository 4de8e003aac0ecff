#pragma once

#include <dflow/base/threads/thread_pool.hpp>

#include <list>
#include <memory>
#include <mutex>

namespace dflow::net {

/// Runs tasks on a pool in the order of their posting, never two at once and never inside `post`. After some tasks it
/// lets other work of the pool go first.
///
/// Thread safety: safe.
class Strand : public std::enable_shared_from_this<Strand> {
 public:
  explicit Strand(std::shared_ptr<ThreadPool> pool) noexcept : pool_(std::move(pool)) {}

  /// Errors: bad_alloc; the task is dropped, with the earlier tasks that have not begun.
  void post(Task task);

 private:
  void run();

  const std::shared_ptr<ThreadPool> pool_;
  std::mutex mutex_;
  std::list<Task> tasks_;  ///< moved about without memory
  bool is_running_ = false;
};

}  // namespace dflow::net
