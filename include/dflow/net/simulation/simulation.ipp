#pragma once

#include <dflow/base/spread_bits.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/task_ring.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace dflow::net {

/// The owner of a process's events and timers.
struct Simulation::Life {
  explicit Life(std::string its_name) : name(std::move(its_name)) {}

  const std::string name;
  std::atomic<bool> is_alive{true};
  std::vector<Task> hooks;  ///< guarded by the simulation's mutex
};

namespace detail {

/// The process of the event that the calling thread runs.
const Simulation::Life*& current_life() noexcept {
  static constinit thread_local const Simulation::Life* life = nullptr;
  return life;
}

}  // namespace detail

struct Simulation::State {
  using time_point = Clock::time_point;

  /// One event, in a place that is used again.
  struct Slot {
    Task task;
    std::shared_ptr<Life> life;  ///< null: of no process
    std::uint64_t sequence = 0;  ///< 0: free
    bool is_of_pool = false;
  };
  /// When it happens. An event was cancelled if its slot has another number by then.
  struct Due {
    time_point time;
    std::uint64_t sequence;
    std::uint32_t slot;
    friend bool operator<(const Due& a, const Due& b) noexcept {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;  // the earliest is the heap's largest
    }
  };

  State(std::uint64_t its_seed, const SimulationOptions& its_options)
      : seed(its_seed), options(its_options), random_state(its_seed) {}

  const std::uint64_t seed;
  const SimulationOptions options;
  std::atomic<time_point::rep> now_ticks{0};
  mutable std::mutex mutex;  ///< guards the members below
  std::vector<Due> heap;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> free_slots;
  std::vector<std::weak_ptr<Life>> lives;
  std::uint64_t last_sequence = 0;
  std::uint64_t random_state;
  std::uint64_t trace = 0;
  std::uint64_t num_events = 0;
  time_point limit = Clock::never;  ///< of waits

  time_point now() const noexcept { return time_point(Duration(now_ticks.load(std::memory_order_relaxed))); }
  time_point after(Duration delay) const noexcept {
    const time_point from = now();
    return delay > Clock::never - from ? Clock::never : from + delay;
  }

  std::uint64_t random() noexcept {
    const std::lock_guard lock(mutex);
    return spread_bits(random_state += spread_step);
  }
  std::uint64_t random_below(std::uint64_t n) noexcept { return n < 2 ? 0 : random() % n; }

  void note(std::uint64_t value) noexcept {
    const std::lock_guard lock(mutex);
    mix(value);
  }
  void mix(std::uint64_t value) noexcept { trace = spread_bits(trace * 31 + value + 1); }

  /// After its process has crashed, a task of a pool is run as an event of no process. Any other task is only
  /// destroyed by an event of no process: the caller may hold locks that the task's destructor takes.
  TimerId add(time_point time, std::shared_ptr<Life> life, Task task, bool is_of_pool = false) {
    const std::lock_guard lock(mutex);
    if (life != nullptr && !life->is_alive.load(std::memory_order_relaxed)) {
      life = nullptr;
      if (!is_of_pool) task = [forgotten = std::move(task)] {};
      time = now();
    }
    std::uint32_t slot = 0;
    if (free_slots.empty()) {
      slot = static_cast<std::uint32_t>(slots.size());
      slots.emplace_back();
      free_slots.reserve(slots.capacity());
    } else {
      slot = free_slots.back();
      free_slots.pop_back();
    }
    heap.push_back({std::max(time, now()), ++last_sequence, slot});
    std::push_heap(heap.begin(), heap.end());
    slots[slot].task = std::move(task);
    slots[slot].life = std::move(life);
    slots[slot].sequence = last_sequence;
    slots[slot].is_of_pool = is_of_pool;
    return TimerId{last_sequence << slot_bits | slot};
  }

  bool cancel(TimerId id) {
    const auto slot = static_cast<std::size_t>(static_cast<std::uint64_t>(id) & ((std::uint64_t{1} << slot_bits) - 1));
    Task removed;  // destroyed without the lock
    const std::lock_guard lock(mutex);
    if (slot >= slots.size() || slots[slot].sequence != static_cast<std::uint64_t>(id) >> slot_bits) return false;
    if (slots[slot].sequence == 0) return false;
    removed = release(slot);
    return true;
  }

  bool run_one() {
    Task task;
    std::shared_ptr<Life> life;
    {
      const std::lock_guard lock(mutex);
      drop_cancelled();
      if (heap.empty()) return false;
      const Due due = heap.front();
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      now_ticks.store(due.time.time_since_epoch().count(), std::memory_order_relaxed);
      life = slots[due.slot].life;
      task = release(due.slot);
      ++num_events;
      mix(static_cast<std::uint64_t>(due.time.time_since_epoch().count()));
      mix(due.sequence);
    }
    const Life* const outer = std::exchange(detail::current_life(), life.get());
    dflow::detail::run_task(task);
    task = nullptr;
    detail::current_life() = outer;
    return true;
  }

  /// Clock::never if nothing is left.
  time_point next_time() {
    const std::lock_guard lock(mutex);
    drop_cancelled();
    return heap.empty() ? Clock::never : heap.front().time;
  }

  void crash(Life& life) {
    std::vector<Task> hooks, forgotten;
    std::vector<std::pair<std::uint64_t, Task>> remains;  ///< by sequence
    {
      const std::lock_guard lock(mutex);
      if (!life.is_alive.exchange(false)) return;
      hooks.swap(life.hooks);
      for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        if (slots[slot].sequence == 0 || slots[slot].life.get() != &life) continue;
        const std::uint64_t sequence = slots[slot].sequence;
        if (slots[slot].is_of_pool) {
          remains.emplace_back(sequence, release(slot));
        } else {
          forgotten.push_back(release(slot));
        }
      }
    }
    for (Task& hook : hooks) hook();
    // They are not destroyed here: the caller may hold locks that their destructors take.
    add(now(), nullptr, [forgotten = std::move(forgotten)] {});
    std::sort(remains.begin(), remains.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [sequence, task] : remains) add(now(), nullptr, std::move(task), true);
  }

 private:
  static constexpr int slot_bits = 24;

  Task release(std::size_t slot) {
    slots[slot].sequence = 0;
    slots[slot].life = nullptr;
    free_slots.push_back(static_cast<std::uint32_t>(slot));
    return std::exchange(slots[slot].task, nullptr);
  }
  void drop_cancelled() {
    while (!heap.empty() && slots[heap.front().slot].sequence != heap.front().sequence) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
  }
};

namespace detail {

class SimulatedClock final : public Clock {
 public:
  SimulatedClock(std::shared_ptr<Simulation::State> state, std::shared_ptr<Simulation::Life> life)
      : state_(std::move(state)), life_(std::move(life)) {}

  time_point now() const override { return state_->now(); }
  wall_time_point wall_now() const override {
    return wall_time_point(std::chrono::seconds(1'700'000'000)) + now().time_since_epoch();
  }
  TimerId schedule_at(time_point time, UniqueFunction<void()> callback) override {
    return state_->add(time, life_, std::move(callback));
  }
  bool cancel(TimerId id) override { return state_->cancel(id); }

 private:
  const std::shared_ptr<Simulation::State> state_;
  const std::shared_ptr<Simulation::Life> life_;
};

class SimulatedPool final : public ThreadPool {
 public:
  SimulatedPool(std::shared_ptr<Simulation::State> state, std::shared_ptr<Simulation::Life> life)
      : state_(std::move(state)), life_(std::move(life)) {}

  int num_threads() const noexcept override { return state_->options.num_threads; }
  void schedule(Task task) override {
    const auto most = static_cast<std::uint64_t>(state_->options.max_pool_delay.count());
    const Duration delay(static_cast<Duration::rep>(state_->random_below(most + 1)));
    state_->add(state_->after(delay), life_, std::move(task), true);
  }
  void wait(PoolEvent& event) override {
    const Simulation::Life* const outer = std::exchange(current_life(), nullptr);
    const Status status = turn_until_set(event);
    current_life() = outer;
    throw_if_error(status);
  }
  bool current_thread_is_worker() const noexcept override { return current_life() == life_.get(); }

 private:
  /// A simulation has one thread: helpers would find no work.
  void run_shards(std::int64_t total, std::int64_t shard, int /*participants*/, double /*cost_ns*/,
                  RangeBody body) override {
    for (std::int64_t begin = 0; begin < total; begin += std::min(shard, total - begin)) {
      body(begin, begin + std::min(shard, total - begin));
    }
  }
  Status turn_until_set(PoolEvent& event) {
    while (!event.is_set()) {
      if (!life_->is_alive) return Status::cancelled(str_cat(life_->name, " has crashed"));
      const Clock::time_point next = state_->next_time();
      Clock::time_point limit;
      {
        const std::lock_guard lock(state_->mutex);
        limit = state_->limit;
      }
      if (next == Clock::never)
        return Status::internal(str_cat(life_->name, " waits for what nothing will bring about"));
      if (next > limit)
        return Status::deadline_exceeded(str_cat(life_->name, " waits when the simulation is to have ended"));
      state_->run_one();
    }
    return {};
  }

  const std::shared_ptr<Simulation::State> state_;
  const std::shared_ptr<Simulation::Life> life_;
};

}  // namespace detail

// ---- Simulation ----

Simulation::Simulation(std::uint64_t seed, const SimulationOptions& options)
    : state_(std::make_shared<State>(seed, options)) {
  if (options.num_threads < 1) throw_error(Status::invalid_argument("a simulated pool has at least one thread"));
}

Simulation::~Simulation() {
  std::vector<std::weak_ptr<Life>> lives;
  {
    const std::lock_guard lock(state_->mutex);
    lives.swap(state_->lives);
  }
  for (const std::weak_ptr<Life>& weak : lives) {
    if (const std::shared_ptr<Life> life = weak.lock()) state_->crash(*life);
  }
  // The rest of their pools' tasks is run, as after any crash: a step that has begun is let go of when it has ended.
  // All other events belong to no process, and must not happen any more. Both may leave more.
  for (;;) {
    std::vector<State::Slot> left;
    {
      const std::lock_guard lock(state_->mutex);
      left.swap(state_->slots);
      state_->free_slots.clear();
      state_->heap.clear();
    }
    if (left.empty()) return;
    std::sort(left.begin(), left.end(),
              [](const State::Slot& a, const State::Slot& b) { return a.sequence < b.sequence; });
    for (State::Slot& slot : left) {
      if (slot.sequence != 0 && slot.is_of_pool) dflow::detail::run_task(slot.task);
      slot.task = nullptr;
    }
  }
}

std::uint64_t Simulation::seed() const noexcept { return state_->seed; }
Clock::time_point Simulation::now() const noexcept { return state_->now(); }
Clock::time_point Simulation::after(Duration delay) const noexcept { return state_->after(delay); }

std::uint64_t Simulation::random() noexcept { return state_->random(); }
std::uint64_t Simulation::random_below(std::uint64_t n) noexcept { return state_->random_below(n); }
Duration Simulation::random_between(Duration least, Duration most) noexcept {
  const auto span = static_cast<std::uint64_t>(std::max(Duration::zero(), most - least).count());
  return least + Duration(static_cast<Duration::rep>(state_->random_below(span + 1)));
}
bool Simulation::chance(double probability) noexcept {
  return static_cast<double>(state_->random() >> 11) * 0x1p-53 < probability;
}

std::shared_ptr<SimulatedProcess> Simulation::start(std::string name) {
  return std::make_shared<SimulatedProcess>(state_, std::move(name));
}
void Simulation::schedule_after(Duration delay, Task event) {
  state_->add(state_->after(delay), nullptr, std::move(event));
}

bool Simulation::run_one() { return state_->run_one(); }

bool Simulation::run_until(FunctionRef<bool()> condition, Clock::time_point deadline) {
  const auto limit_waits = [this](Clock::time_point limit) {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->limit, limit);
  };
  Clock::time_point outer = limit_waits(deadline);
  if (outer < deadline) limit_waits(outer);
  bool holds = condition();
  while (!holds && state_->next_time() <= deadline && state_->run_one()) holds = condition();
  limit_waits(outer);
  return holds;
}

void Simulation::run_for(Duration time) {
  const Clock::time_point deadline = after(time);
  run_until([] { return false; }, deadline);
  if (now() < deadline) state_->now_ticks.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
}

std::uint64_t Simulation::trace_hash() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->trace;
}
void Simulation::note(std::uint64_t value) noexcept { state_->note(value); }
void Simulation::note(std::string_view bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->mix(bytes.size());
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    state_->mix(word);
    bytes.remove_prefix(sizeof word);
  }
  for (const char c : bytes) state_->mix(static_cast<unsigned char>(c));
}
std::uint64_t Simulation::num_events() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->num_events;
}

// ---- SimulatedProcess ----

SimulatedProcess::SimulatedProcess(std::shared_ptr<Simulation::State> state, std::string name)
    : state_(std::move(state)), life_(std::make_shared<Simulation::Life>(std::move(name))) {
  clock_ = std::make_shared<detail::SimulatedClock>(state_, life_);
  pool_ = std::make_shared<detail::SimulatedPool>(state_, life_);
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->lives, [](const std::weak_ptr<Simulation::Life>& life) { return life.expired(); });
  state_->lives.push_back(life_);
}
SimulatedProcess::~SimulatedProcess() = default;

const std::string& SimulatedProcess::name() const noexcept { return life_->name; }
bool SimulatedProcess::is_alive() const noexcept { return life_->is_alive; }
void SimulatedProcess::schedule_after(Duration delay, Task event) {
  state_->add(state_->after(delay), life_, std::move(event));
}
void SimulatedProcess::crash() { state_->crash(*life_); }
void SimulatedProcess::on_crash(Task hook) {
  const std::lock_guard lock(state_->mutex);
  if (life_->is_alive) life_->hooks.push_back(std::move(hook));
}

}  // namespace dflow::net
