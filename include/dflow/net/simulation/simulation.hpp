#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dflow::net {

class SimulatedProcess;

struct SimulationOptions {
  /// A task of a pool begins up to this long after it was scheduled, at random: two tasks begin in any order.
  Duration max_pool_delay = std::chrono::microseconds(100);
  /// The number of threads that the pools report; all of them run in the simulation's thread.
  int num_threads = 2;
};

/// Many processes in one thread, with one clock that jumps from event to event and one source of random numbers. The
/// events and their order follow from the seed alone.
///
/// ```cpp
/// df::net::Simulation simulation(seed);
/// auto process = simulation.start("worker0");  // servers and sessions take its clock and pool
/// simulation.schedule_after(std::chrono::seconds(7), [=] { process->crash(); });
/// bool ended = simulation.run_until([&] { return is_done; }, simulation.after(std::chrono::seconds(200)));
/// ```
///
/// Events run in order of their time, and for equal times of their scheduling. A blocking wait in a pool of the
/// simulation runs events on its own stack until the awaited event has happened: of two waits, the wait that began
/// later ends first.
///
/// Thread safety: safe, so that a test may use other threads; a run is repeatable only if one thread does everything.
/// One thread runs events at a time.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, const SimulationOptions& options = {});
  /// Crashes all processes, and runs the rest of their pools' tasks, so the objects that the tasks refer to must be
  /// there. All waits in a pool must have returned.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  std::uint64_t seed() const noexcept;
  Clock::time_point now() const noexcept;
  Clock::time_point after(Duration delay) const noexcept;

  /// 64 random bits.
  std::uint64_t random() noexcept;
  /// In [least, most].
  Duration random_between(Duration least, Duration most) noexcept;
  /// In [0, n); n is at least 1.
  std::uint64_t random_below(std::uint64_t n) noexcept;
  /// True with this probability.
  bool chance(double probability) noexcept;

  /// One life of a process. A name may be used again when the process of that name has crashed.
  std::shared_ptr<SimulatedProcess> start(std::string name);
  /// An event of no process: a fault, or an observation.
  void schedule_after(Duration delay, Task event);

  /// Runs the next event; false if there is none.
  bool run_one();
  /// Runs events until `condition` holds, which is asked after each, or time has come to `deadline`. False if it does
  /// not hold then, or nothing is left that could happen. Pools do not wait beyond the deadline meanwhile.
  bool run_until(FunctionRef<bool()> condition, Clock::time_point deadline);
  /// Runs the events of that time.
  void run_for(Duration time);

  /// A hash of all events so far, in their order, and of all notes: the same for two runs of one seed.
  std::uint64_t trace_hash() const noexcept;
  void note(std::uint64_t value) noexcept;
  void note(std::string_view bytes) noexcept;
  std::uint64_t num_events() const noexcept;

  struct State;
  struct Life;

 private:
  std::shared_ptr<State> state_;
};

/// A simulated process on its machine, from its start to its crash. After that none of its timers and events happens
/// any more. Tasks of its pool run at once, and so do tasks that they schedule: all work that was begun in the
/// process comes to its end and is let go. Nobody else sees it, for the process has no connections any more.
///
/// Thread safety: as Simulation.
class SimulatedProcess {
 public:
  SimulatedProcess(std::shared_ptr<Simulation::State> state, std::string name);
  ~SimulatedProcess();

  const std::string& name() const noexcept;
  bool is_alive() const noexcept;

  /// Timers run at their time; calendar time is the same in all processes.
  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  /// `wait` throws Cancelled when the process has crashed, DeadlineExceeded beyond the deadline of `run_until`, and
  /// Internal when nothing can happen any more. A process that crashes must not wait in `Session::run`, which lends
  /// its stack to the step: it runs steps asynchronously.
  const std::shared_ptr<ThreadPool>& pool() const noexcept { return pool_; }

  /// An event of this process.
  void schedule_after(Duration delay, Task event);
  /// Forgets the coming events of the process. Called by an event, also by one of its own. A second call does
  /// nothing.
  void crash();
  /// Called by `crash`, before anything is forgotten, in the order of the `on_crash` calls.
  void on_crash(Task hook);

 private:
  const std::shared_ptr<Simulation::State> state_;
  const std::shared_ptr<Simulation::Life> life_;
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace dflow::net
