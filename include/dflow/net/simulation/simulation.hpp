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
  /// A task of a pool begins up to so much after it was scheduled, at random: so two of them begin in any order.
  Duration max_pool_delay = std::chrono::microseconds(100);
  /// What the pools say of themselves; all of them run in the simulation's thread.
  int num_threads = 2;
};

/// Many processes in one thread, with one clock that jumps from event to event and one source of random numbers: what
/// happens, and in which order, follows from the seed alone.
///
/// ```cpp
/// df::net::Simulation simulation(seed);
/// auto process = simulation.start("worker0");  // its clock and pool are what servers and sessions are made with
/// simulation.schedule_after(std::chrono::seconds(7), [=] { process->crash(); });
/// bool ended = simulation.run_until([&] { return is_done; }, simulation.after(std::chrono::seconds(200)));
/// ```
///
/// Events run in order of their time, and for equal times of their scheduling. A blocking wait in a pool of the
/// simulation runs events until what it waits for has happened, on its own stack: of two waits, the one that began
/// later ends first.
///
/// Thread safety: safe, so that a test may use other threads; what happens is repeatable only where all is done by one.
/// One thread runs events at a time.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, const SimulationOptions& options = {});
  /// Crashes all processes, and runs what their pools have left, so what that refers to must be there. Those who wait
  /// in a pool must have returned.
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
  /// An event of no process: a fault, or a look at what goes on.
  void schedule_after(Duration delay, Task event);

  /// Runs the next event; false if there is none.
  bool run_one();
  /// Runs events until `condition` holds, which is asked after each, or time has come to `deadline`. False if it does
  /// not hold then, or nothing is left that could happen. Pools do not wait beyond the deadline meanwhile.
  bool run_until(FunctionRef<bool()> condition, Clock::time_point deadline);
  /// Runs what happens in that time.
  void run_for(Duration time);

  /// Of all events so far, in their order, and of what was noted: the same for two runs of one seed.
  std::uint64_t trace_hash() const noexcept;
  void note(std::uint64_t value) noexcept;
  void note(std::string_view bytes) noexcept;
  std::uint64_t num_events() const noexcept;

  struct State;
  struct Life;

 private:
  std::shared_ptr<State> state_;
};

/// What a simulated process has of its machine, from its start to its crash. After that none of its timers and events
/// happens any more. Tasks of its pool run at once, those that they schedule too: whatever is begun in the process
/// comes to its end and is let go, but nobody else sees it, for the process has no connections any more.
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
  /// Internal when nothing can happen any more. What crashes must not wait in `Session::run`, which lends its stack to
  /// the step: it runs steps asynchronously.
  const std::shared_ptr<ThreadPool>& pool() const noexcept { return pool_; }

  /// An event of this process.
  void schedule_after(Duration delay, Task event);
  /// Forgets what the process would have done. Called by an event, also by one of its own. A second call does nothing.
  void crash();
  /// Called by `crash`, before anything is forgotten, in the order in which they were given.
  void on_crash(Task hook);

 private:
  const std::shared_ptr<Simulation::State> state_;
  const std::shared_ptr<Simulation::Life> life_;
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace dflow::net
