#include "simulated_cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace dflow::testing {

using namespace std::chrono_literals;

void TrainingFacts::fail(std::string what) {
  log(str_cat("FAILED: ", what));
  if (outcome.failure.empty()) outcome.failure = std::move(what);
}

void TrainingFacts::log(std::string_view line) const {
  if (!is_verbose_) return;
  const double seconds = std::chrono::duration<double>(simulation_.now().time_since_epoch()).count();
  std::fprintf(stderr, "%10.6f %.*s\n", seconds, static_cast<int>(line.size()), line.data());
}

void TrainingFacts::note_crash(const std::string&) { ++outcome.num_crashes; }

void SimulatedWorld::draw_faults() {
  max_fault_pause = std::chrono::seconds(2 << simulation.random_below(4));
  silence_timeout = std::chrono::seconds(simulation.chance(0.5) ? 10 : 2);
  if (simulation.chance(0.5)) secret = "the secret of a simulated cluster";
}

// ---- a worker ----

SimulatedWorker::SimulatedWorker(SimulatedWorld& world, int index, std::shared_ptr<net::SimulatedProcess> process,
                                 std::shared_ptr<SessionTarget> target)
    : world_(world), index_(index), process_(std::move(process)), target_(std::move(target)) {}

void SimulatedWorker::end() {
  session_ = nullptr;
  target_ = nullptr;
}

bool SimulatedWorker::hangs() const { return run_ends_by_ && world_.simulation.now() > *run_ends_by_; }

void SimulatedWorker::after(Duration pause, std::function<void()> work) {
  process_->clock()->schedule_after(pause, [self = shared_from_this(), work = std::move(work)]() mutable {
    self->process_->pool()->schedule([self, work = std::move(work)] {
      if (self->is_alive()) work();
    });
  });
}

void SimulatedWorker::go() {
  if (session_ == nullptr) return make_session();
  go_on(*session_, std::exchange(is_fresh_, false));
}

void SimulatedWorker::make_session() {
  SessionOptions options;
  options.ops = world_.ops;
  options.target = target_;
  options.clock = process_->clock();
  options.callbacks = process_->pool();
  options.incarnation = world_.simulation.random();
  std::unique_ptr<Session> made;
  try {
    made = std::make_unique<Session>(graph(), options);
  } catch (const Error& error) {
    if (is_alive()) lose(error.status());
    return;
  }
  if (!is_alive()) return;
  ++world_.facts.outcome.num_sessions;
  session_ = std::move(made);
  is_fresh_ = true;
  go();
}

void SimulatedWorker::run(std::vector<Feed> feeds, std::span<const AnyOutput> fetched, std::vector<Operation> targets,
                          Then then, std::optional<Duration> deadline) {
  RunOptions options;
  options.deadline = deadline;
  if (!deadline && world_.simulation.chance(0.5)) options.deadline = world_.simulation.random_between(1s, 20s);
  // Without a deadline the run ends when a silent task is given up, or a task cannot be reached.
  run_ends_by_ = world_.simulation.after(options.deadline ? *options.deadline + 100ms : Duration(45s));
  session_->run_async_erased(
      options, feeds, fetched, targets,
      [self = shared_from_this(), then = std::move(then)](const Status& status, const Results& results) {
        if (!self->is_alive()) return;
        if (self->hangs()) self->world_.facts.fail(str_cat(self->name(), " ended too late"));
        self->run_ends_by_.reset();
        if (!status.ok()) return self->lose(status);
        then(results);
      });
}

void SimulatedWorker::note_step() {
  ++world_.facts.outcome.num_acknowledged;
  world_.facts.last_step[static_cast<std::size_t>(index_)] = world_.simulation.now();
  later(world_.simulation.random_between(0ms, world_.max_pause));
}

void SimulatedWorker::lose(const Status& status) {
  TrainingFacts& facts = world_.facts;
  const Code code = status.code();
  ++facts.outcome.num_failed;
  ++facts.outcome.errors[std::string(code_name(code))];
  facts.log(str_cat(name(), ": ", status.to_string()));
  const bool is_lost = code == Code::unavailable || code == Code::aborted || code == Code::deadline_exceeded;
  if (!is_lost) facts.fail(str_cat(name(), " was told ", status.to_string()));
  // A session can go on after an error, unless a task was started anew.
  if (code == Code::aborted || world_.simulation.chance(0.5)) session_ = nullptr;
  later(world_.simulation.random_between(20ms, 500ms));
}

// ---- the cluster ----

/// A task, from one start to the next.
struct SimulatedCluster::Task {
  std::string job;
  int index = 0;
  std::shared_ptr<net::SimulatedProcess> process;
  std::unique_ptr<net::Server> server;
  std::shared_ptr<SimulatedWorker> worker;
  std::string name() const { return job + std::to_string(index); }
};

SimulatedCluster::SimulatedCluster(SimulatedWorld& world, MakeWorker make_worker)
    : world_(world), make_worker_(std::move(make_worker)) {
  if (!world_.secret.empty()) spec_.set_secret(world_.secret);
  world_.facts.last_step.resize(static_cast<std::size_t>(world_.num_workers));
  for (int p = 0; p < world_.num_ps; ++p) add_task("ps", p);
  for (int w = 0; w < world_.num_workers; ++w) add_task("worker", w);
  for (const auto& task : tasks_) start_after(*task, world_.simulation.random_between(0s, 2s));
}

SimulatedCluster::~SimulatedCluster() {
  for (const auto& task : tasks_) crash(*task, true);
  world_.simulation.run_until([] { return false; }, world_.simulation.now());
}

TrainingOutcome SimulatedCluster::run(const TrainingOptions& options) {
  net::Simulation& simulation = world_.simulation;
  TrainingFacts& facts = world_.facts;
  const Clock::time_point faults_end = simulation.after(options.faults);
  const Clock::time_point end = faults_end + options.calm;
  plan_fault(faults_end);
  const auto has_failed = [&] { return !facts.outcome.failure.empty(); };
  simulation.run_until(has_failed, faults_end);
  world_.network.heal();
  world_.network.set_link({});
  simulation.run_until(has_failed, end);
  for (int w = 0; w < world_.num_workers; ++w) {
    const Clock::time_point last = facts.last_step[static_cast<std::size_t>(w)];
    if (last < end - 15s) facts.fail(str_cat("worker", w, " has made no progress after the faults"));
  }
  for (const auto& task : tasks_) {
    if (task->worker != nullptr && task->worker->hangs()) facts.fail(str_cat(task->name(), " hangs"));
  }
  facts.outcome.trace_hash = simulation.trace_hash();
  facts.outcome.num_events = simulation.num_events();
  return facts.outcome;
}

void SimulatedCluster::add_task(const std::string& job, int index) {
  spec_.add_task(job, index, job + std::to_string(index));
  tasks_.push_back(std::make_unique<Task>());
  tasks_.back()->job = job;
  tasks_.back()->index = index;
}

void SimulatedCluster::start_after(Task& task, Duration pause) {
  world_.simulation.schedule_after(pause, [this, &task] { start(task); });
}

void SimulatedCluster::start(Task& task) {
  if (task.process != nullptr) return;
  world_.facts.log(str_cat(task.name(), " starts"));
  task.process = world_.simulation.start(task.name());
  net::ServerOptions options;
  options.ops = world_.ops;
  options.pool = task.process->pool();
  options.clock = task.process->clock();
  options.transport = world_.network.transport(task.process);
  options.startup_timeout = 10s;
  options.silence_timeout = world_.silence_timeout;
  options.random = options.draw_seed = [this] { return world_.simulation.random(); };
  options.log = [this, name = task.name()](std::string_view line) { world_.facts.log(str_cat(name, ": ", line)); };
  options.callbacks = std::make_shared<InlinePool>();
  net::ClusterSpec spec = spec_;
  spec.set_task(task.job, task.index);
  task.server = std::make_unique<net::Server>(spec, options);
  if (task.job == "ps") return;
  task.worker = make_worker_(task.index, task.process, task.server->target({"/job:ps"}));
  task.worker->begin();
}

void SimulatedCluster::crash(Task& task, bool with_power) {
  if (task.process == nullptr) return;
  world_.facts.log(str_cat(task.name(), with_power ? " crashes" : " loses power"));
  world_.facts.note_crash(task.name());
  with_power ? task.process->crash() : world_.network.power_off(*task.process);
  if (task.worker != nullptr) task.worker->end();
  task.worker = nullptr;
  task.server = nullptr;
  task.process = nullptr;
}

/// Ends the task as a program ends that is asked to.
void SimulatedCluster::stop(Task& task) {
  if (task.process == nullptr) return;
  world_.facts.log(str_cat(task.name(), " stops"));
  task.server->stop();
  world_.simulation.schedule_after(world_.simulation.random_between(0s, 1s), [this, &task, process = task.process] {
    if (task.process == process) crash(task, true);
  });
}

void SimulatedCluster::plan_fault(Clock::time_point until) {
  const Duration pause = world_.simulation.random_between(0s, world_.max_fault_pause);
  if (world_.simulation.after(pause) >= until) return;
  world_.simulation.schedule_after(pause, [this, until] {
    cause_fault(until);
    plan_fault(until);
  });
}

void SimulatedCluster::cause_fault(Clock::time_point until) {
  const auto one = [&]() -> Task& { return *tasks_[world_.simulation.random_below(tasks_.size())]; };
  Task& task = one();
  const std::string a = task.name(), b = one().name();
  const auto soon = [&](Duration most) {
    return std::min(world_.simulation.random_between(0s, most), Duration(until - world_.simulation.now()));
  };
  const auto say = [&](std::string_view what) { world_.facts.log(str_cat("fault: ", a, " ", what, " ", b)); };
  switch (world_.simulation.random_below(9)) {
    case 0:
    case 1:
      crash(task, world_.simulation.chance(0.5));
      return start_after(task, soon(15s));
    case 2:
      stop(task);
      return start_after(task, 1s + soon(10s));
    case 3:
      say("is reset with");
      return world_.network.reset(a, b, world_.simulation.chance(0.5) ? 1 : 0.5);
    case 4:
      say("forgets");
      return world_.network.forget(a, b, world_.simulation.chance(0.5) ? 1 : 0.5);
    case 5:
    case 6: {
      say("is cut off from");
      const bool is_both = world_.simulation.chance(0.5);
      world_.network.block(a, b);
      if (is_both) world_.network.block(b, a);
      return world_.simulation.schedule_after(soon(25s), [this, a, b] {
        world_.network.unblock(a, b);
        world_.network.unblock(b, a);
      });
    }
    case 7:
      say("does not read from");
      return world_.network.stall(a, b, soon(20s));
    default: {
      world_.facts.log("fault: the network's delays");
      const Duration most = world_.simulation.random_between(1ms, 300ms);
      world_.network.set_link({.max_delay = most, .late_share = 0.02, .max_late = 2s});
      return world_.simulation.schedule_after(soon(20s), [this] { world_.network.set_link({}); });
    }
  }
}

}  // namespace dflow::testing
