#pragma once

#include <dflow/kernels/cuda/memory/completions.hpp>

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace dflow::cuda {

struct Completions::State {
  /// After an error the driver wakes nobody: so often the events are asked nevertheless.
  static constexpr std::chrono::milliseconds longest_sleep{5};

  struct Entry {
    EventHandle event;
    std::shared_ptr<void> kept;
    Done done;
  };

  std::shared_ptr<DeviceCore> core;  ///< null when the thread has ended
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Entry> entries;
  int calls_to_come = 0;  ///< that the driver has been asked for
  bool is_woken = false;
  bool stops = false;

  static void wake(void* state) {
    auto& of = *static_cast<State*>(state);
    const std::lock_guard lock(of.mutex);
    of.is_woken = true;
    --of.calls_to_come;
    of.changed.notify_all();
  }

  void work(const std::shared_ptr<State>& self);
  bool is_lost(std::unique_lock<std::mutex>& lock) const;
  bool finish_some(std::unique_lock<std::mutex>& lock);
};

Completions::Completions(std::shared_ptr<DeviceCore> core) : core_(std::move(core)), state_(std::make_shared<State>()) {
  state_->core = core_;
  thread_ = std::thread([state = state_] { state->work(state); });
}

Completions::~Completions() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stops = true;
    state_->changed.notify_all();
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Completions::after(Ticket ticket, StreamHandle stream, std::shared_ptr<void> what, Done done) {
  const std::shared_ptr<DeviceCore> core = core_;
  const std::shared_ptr<State> state = state_;
  Driver& driver = core->driver();
  ErrorCode code = driver.record(core->device(), ticket.event_, stream);
  if (code != ErrorCode::ok) {
    // Nobody will say when the work is done.
    if (what != nullptr) core->keep(std::move(what));
    return done(code);
  }
  {
    const std::lock_guard lock(state->mutex);
    state->entries.push_back({std::exchange(ticket.event_, EventHandle::none), std::move(what), std::move(done)});
    ++state->calls_to_come;
    state->changed.notify_all();  // from now on it looks now and then, and this may go
  }
  code = driver.call_host(core->device(), stream, &State::wake, state.get());
  if (code != ErrorCode::ok) State::wake(state.get());  // the event is asked now and then
}

/// Takes out the entries whose events have passed or failed, and calls them. The calls run without the lock, because
/// the driver may hold a lock of its own while it calls `wake`, and `done` may ask for more. True if there were any.
bool Completions::State::finish_some(std::unique_lock<std::mutex>& lock) {
  std::vector<Entry> asked = std::move(entries);
  entries.clear();
  lock.unlock();
  bool has_finished = false;
  std::vector<Entry> open;
  for (Entry& entry : asked) {
    const ErrorCode code = core->driver().query(core->device(), entry.event);
    if (code == ErrorCode::not_ready) {
      open.push_back(std::move(entry));
      continue;
    }
    has_finished = true;
    core->give_back(entry.event);
    if (code != ErrorCode::ok && entry.kept != nullptr) core->keep(std::move(entry.kept));
    entry.kept = nullptr;
    entry.done(code);
    entry.done = nullptr;
  }
  lock.lock();
  entries.insert(entries.begin(), std::make_move_iterator(open.begin()), std::make_move_iterator(open.end()));
  return has_finished;
}

/// After an error that sticks no call comes any more.
bool Completions::State::is_lost(std::unique_lock<std::mutex>& lock) const {
  std::size_t free_bytes = 0, total_bytes = 0;
  lock.unlock();
  const ErrorCode code = core->driver().memory_info(core->device(), free_bytes, total_bytes);
  lock.lock();
  return is_sticky(code);
}

void Completions::State::work(const std::shared_ptr<State>& self) {
  std::unique_lock lock(mutex);
  for (;;) {
    is_woken = false;
    if (finish_some(lock)) continue;
    if (stops && entries.empty() && (calls_to_come == 0 || is_lost(lock)) && entries.empty()) break;
    if (entries.empty() && !stops) {
      changed.wait(lock, [this] { return is_woken || stops || !entries.empty(); });
    } else {
      changed.wait_for(lock, longest_sleep, [this] { return is_woken; });
    }
  }
  // A call that never came may be under way still: it finds the state as long as there are streams.
  const std::shared_ptr<DeviceCore> last = std::move(core);
  if (calls_to_come != 0) last->keep(self);
}

}  // namespace dflow::cuda
