#pragma once

#include <dflow/kernels/cuda/memory/completions.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <map>
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
  bool is_woken = false;
  bool stops = false;

  void work();
  bool finish_some(std::unique_lock<std::mutex>& lock);
};

/// Those whom the driver may call, by numbers that are never used again. A device that is lost makes the calls it was
/// asked for late or never, so that no call may hold what it wakes by its address.
struct Completions::Sleepers {
  std::mutex mutex;
  std::map<std::uintptr_t, std::weak_ptr<State>> states;
  std::uintptr_t last = 0;

  /// Never destroyed: the driver's threads may outlive the program's static objects.
  static Sleepers& all() {
    static auto* const sleepers = new Sleepers;
    return *sleepers;
  }
  std::uintptr_t add(const std::shared_ptr<State>& state) {
    const std::lock_guard lock(mutex);
    states.emplace(++last, state);
    return last;
  }
  void remove(std::uintptr_t number) {
    const std::lock_guard lock(mutex);
    states.erase(number);
  }
  std::shared_ptr<State> find(std::uintptr_t number) {
    const std::lock_guard lock(mutex);
    const auto found = states.find(number);
    return found == states.end() ? nullptr : found->second.lock();
  }

  static void wake(void* number) {
    const std::shared_ptr<State> state = all().find(reinterpret_cast<std::uintptr_t>(number));
    if (state == nullptr) return;
    const std::lock_guard lock(state->mutex);
    state->is_woken = true;
    state->changed.notify_all();
  }
};

Completions::Completions(std::shared_ptr<DeviceCore> core) : core_(std::move(core)), state_(std::make_shared<State>()) {
  state_->core = core_;
  thread_ = std::thread([state = state_] { state->work(); });
  number_ = Sleepers::all().add(state_);
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
  Sleepers::all().remove(number_);
}

void Completions::after(Ticket ticket, StreamHandle stream, std::shared_ptr<void> what, Done done) {
  const std::shared_ptr<DeviceCore> core = core_;
  const std::shared_ptr<State> state = state_;
  void* const number = reinterpret_cast<void*>(number_);  // NOLINT(performance-no-int-to-ptr): nobody follows it
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
    state->changed.notify_all();  // from now on it looks now and then, and this may go
  }
  // If it is refused, the event is asked now and then.
  static_cast<void>(driver.call_host(core->device(), stream, &Sleepers::wake, number));
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

void Completions::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    is_woken = false;
    if (finish_some(lock)) continue;
    if (stops && entries.empty()) break;
    if (entries.empty() && !stops) {
      changed.wait(lock, [this] { return is_woken || stops || !entries.empty(); });
    } else {
      changed.wait_for(lock, longest_sleep, [this] { return is_woken; });
    }
  }
  const std::shared_ptr<DeviceCore> last = std::move(core);
  lock.unlock();
}

}  // namespace dflow::cuda
