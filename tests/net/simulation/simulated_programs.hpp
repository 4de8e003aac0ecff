// Programs of simulated processes: blocking code, as users write it, which waits on the virtual clock.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace dflow::testing {

/// Threads of which one runs at a time, while the simulation stands still. A thread that waits lets the simulation go
/// on, and goes on itself a random moment after its event: all follows from the simulation's seed.
class SimulatedPrograms {
 public:
  explicit SimulatedPrograms(net::Simulation& simulation) : simulation_(simulation) {}
  /// Precondition: all threads have ended.
  ~SimulatedPrograms() = default;
  SimulatedPrograms(const SimulatedPrograms&) = delete;
  SimulatedPrograms& operator=(const SimulatedPrograms&) = delete;

  void start(Task work) {
    auto started = std::make_shared<Thread>();
    started->thread = std::thread([this, thread = started.get(), work = std::move(work)]() mutable {
      thread->turn.acquire();
      current() = thread;
      work();
      work = nullptr;
      thread->has_ended = true;
      is_over_.release();
    });
    threads_.push_back(started);
    let_go_on(*started);
  }
  /// Called by such a thread.
  void wait(PoolEvent& event) {
    Thread& thread = *current();
    if (event.is_set()) return;
    thread.awaited = &event;
    is_over_.release();
    thread.turn.acquire();
  }
  static bool is_current_thread_one() { return current() != nullptr; }

  /// Lets the threads go on whose turn it is, until each waits. Call it after each event of the simulation.
  void run() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const std::shared_ptr<Thread> thread = threads_[i];
      if (thread->awaited != nullptr && thread->awaited->is_set()) let_go_on(*thread);
      if (!thread->is_next || thread->has_ended) continue;
      thread->is_next = false;
      thread->turn.release();
      is_over_.acquire();
      if (thread->has_ended) thread->thread.join();
      i = static_cast<std::size_t>(-1);  // it may have set the event of any other
    }
    std::erase_if(threads_, [](const auto& thread) { return thread->has_ended; });
  }
  bool are_over() const { return threads_.empty(); }

 private:
  struct Thread {
    std::thread thread;
    std::binary_semaphore turn{0};
    PoolEvent* awaited = nullptr;
    bool is_next = false;
    bool has_ended = false;
  };

  void let_go_on(Thread& thread) {
    thread.awaited = nullptr;
    const Duration soon = simulation_.random_between(Duration::zero(), std::chrono::microseconds(100));
    simulation_.schedule_after(soon, [of = &thread] { of->is_next = true; });
  }
  static Thread*& current() {
    static constinit thread_local Thread* thread = nullptr;
    return thread;
  }

  net::Simulation& simulation_;
  std::vector<std::shared_ptr<Thread>> threads_;
  std::binary_semaphore is_over_{0};  ///< the turn of a thread
};

/// The pool of a simulated process, in which programs may wait. Without a process, its tasks are programs.
class ProgramPool final : public ThreadPool {
 public:
  ProgramPool(SimulatedPrograms& programs, std::shared_ptr<ThreadPool> of_process)
      : programs_(programs), of_process_(std::move(of_process)) {}

  int num_threads() const noexcept override { return of_process_ == nullptr ? 1 : of_process_->num_threads(); }
  void schedule(Task task) override {
    of_process_ == nullptr ? programs_.start(std::move(task)) : of_process_->schedule(std::move(task));
  }
  void wait(PoolEvent& event) override {
    SimulatedPrograms::is_current_thread_one() ? programs_.wait(event) : of_process_->wait(event);
  }
  bool current_thread_is_worker() const noexcept override {
    return of_process_ != nullptr && of_process_->current_thread_is_worker();
  }

 private:
  void run_shards(std::int64_t total, std::int64_t, int, double, RangeBody body) override { body(0, total); }

  SimulatedPrograms& programs_;
  const std::shared_ptr<ThreadPool> of_process_;
};

}  // namespace dflow::testing
