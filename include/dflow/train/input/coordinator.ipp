#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/thread_name.hpp>
#include <dflow/train/input/coordinator.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>

namespace dflow::train {

struct Coordinator::State {
  struct Thread {
    std::string name;
    std::string key;  ///< of its group; may be empty
    std::thread::id id;
    bool has_ended = false;
    std::jthread thread;
  };

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<Code> clean_stop;
  std::shared_ptr<Clock> clock;
  std::stop_source source;
  std::atomic<bool> is_stopped{false};  ///< written under the mutex
  std::exception_ptr error;
  bool was_joined = false;
  std::vector<std::thread::id> taken_over;  ///< and not joined yet
  std::list<Thread> threads;

  bool any_runs() const {
    return std::any_of(threads.begin(), threads.end(), [](const Thread& thread) { return !thread.has_ended; });
  }
  bool is_own(std::thread::id id) const {
    return std::find(taken_over.begin(), taken_over.end(), id) != taken_over.end() ||
           std::any_of(threads.begin(), threads.end(), [&](const Thread& thread) { return thread.id == id; });
  }
  /// Takes the ended threads out of the list. Freeing the returned list joins them.
  std::list<Thread> take_ended() {
    std::list<Thread> ended;
    for (auto thread = threads.begin(); thread != threads.end();) {
      const auto next = std::next(thread);
      if (thread->has_ended) ended.splice(ended.end(), threads, thread);
      thread = next;
    }
    return ended;
  }
  /// Null for an error that is an ordinary end.
  std::exception_ptr reported(std::exception_ptr given) const {
    if (given == nullptr) return given;
    try {
      std::rethrow_exception(given);
    } catch (const Error& thrown) {
      return std::find(clean_stop.begin(), clean_stop.end(), thrown.code()) == clean_stop.end() ? given : nullptr;
    } catch (...) {
      return given;
    }
  }

  /// Waits, with the lock, until `is_done()` or that time; returns whether it is done. `self` is this.
  template <class IsDone>
  static bool wait_until(const std::shared_ptr<State>& self, std::unique_lock<std::mutex>& lock, Clock::time_point time,
                         const IsDone& is_done) {
    if (time == Clock::never) {
      self->changed.wait(lock, is_done);
      return true;
    }
    if (is_done() || self->clock->now() >= time) return is_done();
    lock.unlock();
    const TimerId timer = self->clock->schedule_at(time, [self] {
      const std::lock_guard guard(self->mutex);
      self->changed.notify_all();
    });
    lock.lock();
    while (!is_done() && self->clock->now() < time) self->changed.wait(lock);
    const bool done = is_done();
    lock.unlock();
    self->clock->cancel(timer);
    lock.lock();
    return done;
  }
};

Coordinator::Coordinator(CoordinatorOptions options) : state_(std::make_shared<State>()) {
  state_->clean_stop = std::move(options.clean_stop);
  state_->clock = options.clock != nullptr ? std::move(options.clock) : std::make_shared<RealClock>();
}

Coordinator::~Coordinator() {
  request_stop(nullptr, false);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->any_runs(); });
  const std::list<State::Thread> ended = state_->take_ended();
  lock.unlock();
}

void Coordinator::request_stop() { request_stop(nullptr, false); }

void Coordinator::request_stop(std::exception_ptr error) { request_stop(std::move(error), true); }

void Coordinator::request_stop(const Status& status) {
  request_stop(status.ok() ? nullptr : std::make_exception_ptr(Error(status)), true);
}

void Coordinator::request_stop(std::exception_ptr error, bool throws) {
  error = state_->reported(std::move(error));
  std::stop_source source{std::nostopstate};
  {
    const std::lock_guard lock(state_->mutex);
    if (error != nullptr && throws && state_->was_joined && !state_->is_own(std::this_thread::get_id())) {
      std::rethrow_exception(error);
    }
    if (state_->is_stopped.load(std::memory_order_relaxed)) return;
    state_->error = std::move(error);
    state_->is_stopped.store(true, std::memory_order_release);
    source = state_->source;
    state_->changed.notify_all();
  }
  source.request_stop();
}

bool Coordinator::should_stop() const noexcept { return state_->is_stopped.load(std::memory_order_acquire); }

std::stop_token Coordinator::stop_token() const {
  const std::lock_guard lock(state_->mutex);
  return state_->source.get_token();
}

void Coordinator::wait_for_stop() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_stopped.load(std::memory_order_relaxed); });
}

bool Coordinator::wait_for_stop(Duration timeout) const {
  std::unique_lock lock(state_->mutex);
  return State::wait_until(state_, lock, state_->clock->after(timeout),
                           [this] { return state_->is_stopped.load(std::memory_order_relaxed); });
}

void Coordinator::start(std::string name, UniqueFunction<void()> body) {
  std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies;
  bodies.emplace_back(std::move(name), std::move(body));
  start_group({}, std::move(bodies));
}

void Coordinator::start_every(std::string name, Duration interval, UniqueFunction<void()> body) {
  if (!body) return start(std::move(name), nullptr);  // this call reports the empty body
  start(std::move(name), [this, interval, body = std::move(body)]() mutable {
    const std::stop_token stop = stop_token();
    Clock::time_point next = state_->clock->now();
    while (interval > Duration::zero() ? !wait_for_stop(next - state_->clock->now()) && !stop.stop_requested()
                                       : !stop.stop_requested()) {
      next += interval;
      body();
    }
  });
}

bool Coordinator::start_group(const std::string& key,
                              std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies) {
  for (const auto& [name, body] : bodies) {
    if (!body)
      throw_error(Status::invalid_argument(str_cat("thread '", name, "' has nothing to run: its function is empty")));
  }
  std::list<State::Thread> ended;  // joined without the lock
  std::unique_lock lock(state_->mutex);
  ended = state_->take_ended();
  const auto is_of_group = [&](const State::Thread& thread) { return thread.key == key; };
  if (!key.empty() && std::any_of(state_->threads.begin(), state_->threads.end(), is_of_group)) return false;
  for (auto& [name, body] : bodies) {
    State::Thread& thread = state_->threads.emplace_back();
    thread.name = std::move(name);
    thread.key = key;
    // The thread finds its entry in place: it first takes the mutex when it ends, or asks for a stop.
    auto run = [this, &thread, body = std::move(body)]() mutable {
      dflow::detail::name_this_thread("dflow-train", 0);
      stop_on_exception(body);
      {
        // The key may name an object that the body holds, and another object may get that name once the first is
        // freed. Therefore the key is cleared before the body.
        const std::lock_guard group_ends(state_->mutex);
        thread.key.clear();
      }
      body = nullptr;  // before `join` returns
      const std::lock_guard ends(state_->mutex);
      thread.has_ended = true;
      state_->changed.notify_all();
    };
    try {
      thread.thread = std::jthread(std::move(run));
    } catch (const std::exception& error) {  // the system refuses the thread, or no memory
      const std::string failed = std::move(thread.name);
      state_->threads.pop_back();
      lock.unlock();
      request_stop();
      throw_error(Status::resource_exhausted(str_cat("thread '", failed, "' cannot be started: ", error.what())));
    }
    thread.id = thread.thread.get_id();
  }
  return true;
}

void Coordinator::register_thread(std::string name, std::jthread thread) {
  if (!thread.joinable()) return;
  const std::thread::id id = thread.get_id();
  // The entry is removed when the thread has been joined, also if no thread can be started to wait for it.
  const auto entry = std::shared_ptr<void>(nullptr, [state = state_, id](void*) {
    const std::lock_guard lock(state->mutex);
    // Another thread may have got its number by now.
    const auto at = std::find(state->taken_over.begin(), state->taken_over.end(), id);
    if (at != state->taken_over.end()) state->taken_over.erase(at);
  });
  {
    const std::lock_guard lock(state_->mutex);
    state_->taken_over.push_back(id);
  }
  start(std::move(name), [entry, stop = stop_token(), thread = std::move(thread)]() mutable {
    const std::stop_callback stops(stop, [&] { thread.request_stop(); });
    thread.join();
  });
}

std::vector<std::string> Coordinator::running_threads() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const State::Thread& thread : state_->threads) {
    if (!thread.has_ended) names.push_back(thread.name);
  }
  return names;
}

void Coordinator::join(const JoinOptions& options) {
  std::list<State::Thread> ended;  // joined without the lock
  std::unique_lock lock(state_->mutex);
  if (state_->is_own(std::this_thread::get_id())) {
    throw_error(Status::failed_precondition("a thread of the coordinator cannot wait for itself"));
  }
  state_->changed.wait(lock,
                       [this] { return state_->is_stopped.load(std::memory_order_relaxed) || !state_->any_runs(); });
  const bool all_ended =
      State::wait_until(state_, lock, state_->clock->after(options.grace), [this] { return !state_->any_runs(); });
  ended = state_->take_ended();
  state_->was_joined = true;
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
  if (all_ended || options.ignore_stragglers) return;
  std::string names;
  for (const State::Thread& thread : state_->threads) names += str_cat(names.empty() ? "" : ", ", thread.name);
  throw_error(Status::deadline_exceeded(str_cat("threads still run although a stop was requested: ", names)));
}

void Coordinator::clear_stop() {
  const std::lock_guard lock(state_->mutex);
  state_->is_stopped.store(false, std::memory_order_release);
  state_->error = nullptr;
  state_->was_joined = false;
  state_->source = std::stop_source();
}

}  // namespace dflow::train
