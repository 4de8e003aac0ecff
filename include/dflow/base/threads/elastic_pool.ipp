#pragma once

#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/task_ring.hpp>
#include <dflow/base/threads/thread_name.hpp>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace dflow {
namespace detail {

/// The state of the ElasticPool that the calling thread belongs to.
const void*& elastic_pool_of_this_thread() noexcept {
  static constinit thread_local const void* pool = nullptr;
  return pool;
}

}  // namespace detail

/// Threads share it: one may be in a task, or in run_one, that destroys the pool.
struct ElasticPool::State : std::enable_shared_from_this<ElasticPool::State> {
  using Threads = std::list<std::thread>;

  explicit State(ElasticPoolOptions pool_options) : options(std::move(pool_options)) {
    // A wait for longer would overflow the clock.
    options.idle = std::clamp<Duration>(options.idle, Duration::zero(), std::chrono::hours(24));
  }

  void schedule(Task task) {
    Threads ended;
    Task dropped;  // destroyed, as the threads are joined, without the lock
    {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
      if (static_cast<std::size_t>(num_idle) >= tasks.size()) {
        wake.notify_one();
      } else if (running.size() < static_cast<std::size_t>(options.max_threads)) {
        start_thread(dropped);
      }
      ended.swap(ending);
    }
    for (std::thread& thread : ended) thread.join();
  }

  /// For the task that was queued last; called with the lock held. Errors: ResourceExhausted if there is no thread,
  /// and the task is in `dropped`.
  void start_thread(Task& dropped) {
    const auto fail = [&](const char* why) {
      if (!running.empty()) return;
      dropped = tasks.pop_back();
      throw_error(Status::resource_exhausted(str_cat("cannot start a thread: ", why)));
    };
    try {
      Threads added(1);
      const auto at = added.begin();
      *at = std::thread([self = shared_from_this(), at, number = num_started] { self->run_thread(at, number); });
      running.splice(running.end(), added);
      num_started = (num_started + 1) % 1'000'000;
    } catch (const std::system_error& error) {
      fail(error.what());
    } catch (const std::bad_alloc&) {
      fail("out of memory");
    }
  }

  void run_thread(Threads::iterator self, int number) noexcept {
    detail::elastic_pool_of_this_thread() = this;
    detail::name_this_thread(options.name, number);
    std::unique_lock lock(mutex);
    while (true) {
      if (tasks.size() != 0) {
        run_next(lock);
        continue;
      }
      if (is_stopping) break;
      ++num_idle;
      const bool is_woken = wake.wait_for(lock, options.idle, [&] { return tasks.size() != 0 || is_stopping; });
      --num_idle;
      if (!is_woken) break;
    }
    // The thread that destroys the pool has taken this thread out, to join it or to let it end by itself.
    if (self->joinable()) {
      ending.splice(ending.end(), running, self);
    } else {
      running.erase(self);
    }
  }

  /// Called with the lock held and a task queued, and returns so; not held while the task runs and is destroyed.
  void run_next(std::unique_lock<std::mutex>& lock) noexcept {
    {
      Task task = tasks.pop_front();
      lock.unlock();
      detail::run_task(task);
    }
    lock.lock();
  }

  bool run_one() {
    std::unique_lock lock(mutex);
    if (tasks.size() == 0) return false;
    run_next(lock);
    return true;
  }

  /// Ends all threads but the calling one, which ends after its task.
  void stop() noexcept {
    const auto caller = std::this_thread::get_id();
    std::unique_lock lock(mutex);
    is_stopping = true;
    wake.notify_all();
    while (true) {
      std::thread thread = take_joinable(running);
      if (!thread.joinable()) thread = take_joinable(ending);
      if (!thread.joinable()) return;
      if (thread.get_id() == caller) {
        thread.detach();
        continue;
      }
      lock.unlock();
      thread.join();
      lock.lock();
    }
  }

  static std::thread take_joinable(Threads& threads) noexcept {
    const auto found = std::find_if(threads.begin(), threads.end(), [](const auto& t) { return t.joinable(); });
    return found == threads.end() ? std::thread() : std::move(*found);
  }

  ElasticPoolOptions options;
  mutable std::mutex mutex;
  std::condition_variable wake;
  detail::TaskRing tasks;
  Threads running;  ///< each thread takes itself out at its end
  Threads ending;   ///< they only have to return, and are joined when the next is started
  int num_idle = 0;
  int num_started = 0;
  bool is_stopping = false;
};

ElasticPool::ElasticPool(ElasticPoolOptions options) : ThreadPool(std::numeric_limits<double>::infinity()) {
  if (options.max_threads < 1 || options.max_threads > WorkStealingPool::max_threads) {
    throw_error(Status::invalid_argument(str_cat("an elastic pool of up to ", options.max_threads, " threads; 1 to ",
                                                 WorkStealingPool::max_threads, " can be")));
  }
  state_ = std::make_shared<State>(std::move(options));
}

ElasticPool::~ElasticPool() { state_->stop(); }

int ElasticPool::num_threads() const noexcept { return state_->options.max_threads; }

// A task may destroy this pool before the call that queued it, or runs it, is over.

void ElasticPool::schedule(Task task) {
  const std::shared_ptr<State> state = state_;
  state->schedule(std::move(task));
}

bool ElasticPool::run_one() {
  const std::shared_ptr<State> state = state_;
  return state->run_one();
}

void ElasticPool::wait(PoolEvent& event) {
  detail::may_block("waiting for an event");
  event.wait_blocking();
}

bool ElasticPool::current_thread_is_worker() const noexcept {
  return detail::elastic_pool_of_this_thread() == state_.get();
}

int ElasticPool::num_threads_now() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->running.size());
}

void ElasticPool::run_shards(std::int64_t total, std::int64_t /*shard*/, int /*participants*/, double /*cost_ns*/,
                             RangeBody body) {
  body(0, total);
}

}  // namespace dflow
