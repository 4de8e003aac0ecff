#include "simulated_cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>

namespace df = dflow;
using namespace std::chrono_literals;
using dflow::testing::TrainingFacts;

namespace {

/// Hands on what it is fed, and says that it has run.
struct Witness : df::Op<"Witness", df::TypeList<std::int64_t>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto witness_ops = df::standard_ops + df::ops<Witness>;
constinit thread_local TrainingFacts* witnessed = nullptr;

}  // namespace

template <>
struct dflow::Kernel<Witness, dflow::Cpu, std::int64_t> {
  void operator()(KernelContext& context) const {
    const Tensor<std::int64_t> attempt = context.input<std::int64_t>(0);
    if (witnessed != nullptr) {
      witnessed->witness(context.device().name, context.device().incarnation, context.step().step_id, attempt.scalar());
    }
    context.set_output(0, attempt);
  }
};

namespace dflow::testing {

void TrainingFacts::witness(const std::string& device, std::uint64_t incarnation, std::uint64_t step,
                            std::int64_t attempt) {
  if (!seen_.emplace(incarnation, attempt).second) {
    fail(str_cat("the step of attempt ", attempt, " ran twice on ", device));
  }
  const std::uint64_t step_before = steps_.emplace(attempt, step).first->second;
  const std::int64_t attempt_before = attempts_.emplace(step, attempt).first->second;
  if (step_before != step || attempt_before != attempt) {
    fail(str_cat(device, " has run attempt ", attempt, " as step ", step, ": that is another's number"));
  }
}

void TrainingFacts::fail(std::string what) {
  log(str_cat("FAILED: ", what));
  if (failure_.empty()) failure_ = std::move(what);
}

void TrainingFacts::log(std::string_view line) {
  if (!is_verbose) return;
  const double seconds = std::chrono::duration<double>(simulation_.now().time_since_epoch()).count();
  std::fprintf(stderr, "%10.6f %.*s\n", seconds, static_cast<int>(line.size()), line.data());
}

namespace {

bool is_lost(Code code) noexcept {
  return code == Code::unavailable || code == Code::aborted || code == Code::deadline_exceeded;
}

/// What all processes of one simulation share: nothing that they know of.
struct World {
  net::Simulation& simulation;
  net::SimulatedNetwork& network;
  TrainingFacts& facts;
  int num_ps = 0;
  int num_workers = 0;
  bool has_large_tensors = false;
  Duration max_pause = {};        ///< of a worker between two steps
  Duration max_fault_pause = {};  ///< between two faults
  Duration silence_timeout = {};
};

/// How a counter begins: with a number that no other initialisation has.
constexpr int epoch_shift = 32;

/// The program of a worker, as a Supervisor has it, without a thread that it could block.
class TrainingClient : public std::enable_shared_from_this<TrainingClient> {
 public:
  TrainingClient(World& world, int index, std::shared_ptr<net::SimulatedProcess> process,
                 std::shared_ptr<SessionTarget> target)
      : world_(world), index_(index), process_(std::move(process)), target_(std::move(target)) {
    attempt_ = placeholder<std::int64_t>(graph_, {});
    epoch_ = placeholder<std::int64_t>(graph_, {});
    for (int p = 0; p < world.num_ps; ++p) build(p);
  }

  void begin() { later(0ms); }
  /// Its process has crashed.
  void end() {
    session_ = nullptr;
    target_ = nullptr;
  }
  /// A run that should have ended long ago.
  bool hangs() const { return run_ends_by_ && world_.simulation.now() > *run_ends_by_; }
  std::string name() const { return process_->name(); }

 private:
  using Results = std::vector<AnyTensor>;

  void build(int p) {
    const std::string number = std::to_string(p);
    const auto on = graph_.device("/job:ps/task:" + number);
    const Variable<std::int64_t> counter(graph_, 0, {.name = "counter" + number});
    are_initialized_.push_back(counter.is_initialized());
    initialize_.push_back(counter.assign(epoch_));
    const auto begun = apply<Witness>(attempt_);
    const Operation add = [&] {
      const auto after = graph_.control_dependencies({begun.operation()});
      return counter.assign_add(1);
    }();
    const auto value = [&] {
      const auto after = graph_.control_dependencies({add});
      return counter.read();
    }();
    values_.push_back(value);
    echoes_.push_back(begun);
    if (!world_.has_large_tensors) return;
    // Too large to be sent unasked.
    const auto large = broadcast_to(cast<float>(begun), constant(graph_, Tensor<std::int32_t>({1}, {20'000})));
    const auto here = graph_.device("/job:worker/task:" + std::to_string(index_));
    large_.push_back(reduce_max(large));
  }

  bool is_alive() const { return process_->is_alive(); }

  void later(Duration pause) {
    process_->clock()->schedule_after(
        pause, [self = shared_from_this()] { self->process_->pool()->schedule([self] { self->go(); }); });
  }

  void go() {
    if (!is_alive()) return;
    if (session_ == nullptr) return make_session();
    is_ready_ ? step() : look();
  }

  void make_session() {
    SessionOptions options;
    options.ops = witness_ops;
    options.target = target_;
    options.clock = process_->clock();
    options.callbacks = process_->pool();
    options.incarnation = world_.simulation.random();
    std::unique_ptr<Session> made;
    try {
      made = std::make_unique<Session>(graph_, options);
    } catch (const Error& error) {
      if (is_alive()) lose(error.status());
      return;
    }
    if (!is_alive()) return;
    ++world_.facts.num_sessions;
    session_ = std::move(made);
    is_ready_ = false;
    go();
  }

  /// Whether all variables have values; the chief gives them some.
  void look() {
    run({}, are_initialized_, {}, [](TrainingClient& self, Results found) {
      std::vector<int> missing;
      for (int p = 0; p < self.world_.num_ps; ++p) {
        if (!found[static_cast<std::size_t>(p)].as<bool>().scalar()) missing.push_back(p);
      }
      self.is_ready_ = missing.empty();
      if (missing.empty()) return self.go();
      if (self.index_ != 0) return self.later(300ms);
      self.initialize(missing.front());
    });
  }

  void initialize(int p) {
    const std::int64_t epoch = world_.facts.next_epoch++;
    world_.facts.log(str_cat(name(), " initialises ps", p, " with ", epoch));
    run({{epoch_, Tensor<std::int64_t>(epoch << epoch_shift)}}, {}, {initialize_[static_cast<std::size_t>(p)]},
        [](TrainingClient& self, const Results&) { self.go(); });
  }

  /// Adds one on all parameter servers, or on one of them.
  void step() {
    TrainingFacts& facts = world_.facts;
    const std::int64_t attempt = facts.next_attempt++;
    std::vector<int> on;
    const bool is_on_all = world_.simulation.chance(0.6);
    for (int p = 0; p < world_.num_ps; ++p) {
      if (is_on_all || p == index_ % world_.num_ps) on.push_back(p);
    }
    const bool is_large = world_.has_large_tensors && world_.simulation.chance(0.2);
    std::vector<AnyOutput> fetched;
    std::vector<std::int64_t> least;  // what the counters have for certain
    for (const int p : on) {
      fetched.push_back(values_[static_cast<std::size_t>(p)]);
      fetched.push_back(echoes_[static_cast<std::size_t>(p)]);
      if (is_large) fetched.push_back(large_[static_cast<std::size_t>(p)]);
      least.push_back(facts.acknowledged[p]);
    }
    run({{attempt_, Tensor<std::int64_t>(attempt)}}, fetched, {},
        [attempt, on, least, is_large](TrainingClient& self, const Results& results) {
          self.finish_step(attempt, on, least, is_large, results);
        });
  }

  void finish_step(std::int64_t attempt, const std::vector<int>& on, const std::vector<std::int64_t>& least,
                   bool is_large, const Results& results) {
    TrainingFacts& facts = world_.facts;
    std::size_t next = 0;
    for (std::size_t i = 0; i < on.size(); ++i) {
      const std::int64_t value = results[next++].as<std::int64_t>().scalar();
      const std::int64_t echo = results[next++].as<std::int64_t>().scalar();
      if (echo != attempt) facts.fail(str_cat("attempt ", attempt, " got the tensor of ", echo));
      if (is_large && results[next++].as<float>().scalar() != static_cast<float>(attempt)) {
        facts.fail(str_cat("attempt ", attempt, " got the large tensor of another"));
      }
      facts.acknowledge(on[i], value, least[i], name());
    }
    ++facts.num_acknowledged;
    facts.last_step[static_cast<std::size_t>(index_)] = world_.simulation.now();
    later(world_.simulation.random_between(0ms, world_.max_pause));
  }

  template <class Then>
  void run(std::vector<Feed> feeds, std::span<const AnyOutput> fetched, std::vector<Operation> targets, Then then) {
    RunOptions options;
    if (world_.simulation.chance(0.5)) options.deadline = world_.simulation.random_between(1s, 20s);
    // Without a deadline it ends when whoever has fallen silent is given up, or cannot be reached.
    run_ends_by_ = world_.simulation.after(options.deadline ? *options.deadline + 100ms : Duration(45s));
    session_->run_async_erased(options, feeds, fetched, targets,
                               [self = shared_from_this(), then](const Status& status, Results results) {
                                 if (!self->is_alive()) return;
                                 if (self->hangs()) self->world_.facts.fail(str_cat(self->name(), " ended too late"));
                                 self->run_ends_by_.reset();
                                 if (!status.ok()) return self->lose(status);
                                 then(*self, std::move(results));
                               });
  }

  void lose(const Status& status) {
    TrainingFacts& facts = world_.facts;
    ++facts.num_failed;
    ++facts.errors[std::string(code_name(status.code()))];
    facts.log(str_cat(name(), ": ", status.to_string()));
    if (!is_lost(status.code())) facts.fail(str_cat(name(), " was told ", status.to_string()));
    // A session goes on after an error, unless a task was started anew.
    if (status.code() == Code::aborted || world_.simulation.chance(0.5)) session_ = nullptr;
    later(world_.simulation.random_between(20ms, 500ms));
  }

  World& world_;
  const int index_;
  const std::shared_ptr<net::SimulatedProcess> process_;
  std::shared_ptr<SessionTarget> target_;
  Graph graph_;
  Output<std::int64_t> attempt_, epoch_;
  std::vector<AnyOutput> are_initialized_, values_, echoes_, large_;
  std::vector<Operation> initialize_;
  std::unique_ptr<Session> session_;
  bool is_ready_ = false;
  std::optional<Clock::time_point> run_ends_by_;
};

/// A task of the cluster, from one start to the next.
struct SimulatedTask {
  std::string job;
  int index = 0;
  std::shared_ptr<net::SimulatedProcess> process;
  std::unique_ptr<net::Server> server;
  std::shared_ptr<TrainingClient> client;
  std::string name() const { return job + std::to_string(index); }
};

class SimulatedCluster {
 public:
  SimulatedCluster(std::uint64_t seed, const TrainingOptions& options)
      : simulation_(seed, {.num_threads = 2}), network_(simulation_), facts_(simulation_) {
    facts_.is_verbose = options.is_verbose;
    world_.num_ps = static_cast<int>(1 + simulation_.random_below(3));
    world_.num_workers = static_cast<int>(1 + simulation_.random_below(4));
    world_.has_large_tensors = simulation_.chance(0.3);
    world_.max_pause = simulation_.chance(0.3) ? 50ms : 900ms;
    world_.max_fault_pause = std::chrono::seconds(2 << simulation_.random_below(4));
    world_.silence_timeout = std::chrono::seconds(simulation_.chance(0.5) ? 10 : 2);
    if (simulation_.chance(0.5)) spec_.set_secret("the secret of a simulated cluster");
    facts_.last_step.resize(static_cast<std::size_t>(world_.num_workers));
    for (int p = 0; p < world_.num_ps; ++p) add_task("ps", p);
    for (int w = 0; w < world_.num_workers; ++w) add_task("worker", w);
    witnessed = &facts_;
    for (const auto& task : tasks_) start_after(*task, simulation_.random_between(0s, 2s));
  }

  ~SimulatedCluster() {
    for (const auto& task : tasks_) crash(*task, true);
    simulation_.run_until([] { return false; }, simulation_.now());
    witnessed = nullptr;
  }

  TrainingOutcome run(const TrainingOptions& options) {
    const Clock::time_point faults_end = simulation_.after(options.faults);
    const Clock::time_point end = faults_end + options.calm;
    plan_fault(faults_end);
    const auto has_failed = [&] { return !facts_.failure().empty(); };
    simulation_.run_until(has_failed, faults_end);
    network_.heal();
    network_.set_link({});
    simulation_.run_until(has_failed, end);
    for (int w = 0; w < world_.num_workers; ++w) {
      const Clock::time_point last = facts_.last_step[static_cast<std::size_t>(w)];
      if (last < end - 15s) facts_.fail(str_cat("worker", w, " has made no progress after the faults"));
    }
    for (const auto& task : tasks_) {
      if (task->client != nullptr && task->client->hangs()) facts_.fail(str_cat(task->name(), " hangs"));
    }
    TrainingOutcome outcome;
    outcome.failure = facts_.failure();
    outcome.trace_hash = simulation_.trace_hash();
    outcome.num_events = simulation_.num_events();
    outcome.num_acknowledged = facts_.num_acknowledged;
    outcome.num_failed = facts_.num_failed;
    outcome.num_sessions = facts_.num_sessions;
    outcome.num_crashes = facts_.num_crashes;
    outcome.errors = facts_.errors;
    return outcome;
  }

 private:
  void add_task(const std::string& job, int index) {
    spec_.add_task(job, index, job + std::to_string(index));
    tasks_.push_back(std::make_unique<SimulatedTask>());
    tasks_.back()->job = job;
    tasks_.back()->index = index;
  }

  void start_after(SimulatedTask& task, Duration pause) {
    simulation_.schedule_after(pause, [this, &task] { start(task); });
  }

  void start(SimulatedTask& task) {
    if (task.process != nullptr) return;
    facts_.log(str_cat(task.name(), " starts"));
    task.process = simulation_.start(task.name());
    net::ServerOptions options;
    options.ops = witness_ops;
    options.pool = task.process->pool();
    options.clock = task.process->clock();
    options.transport = network_.transport(task.process);
    options.startup_timeout = 10s;
    options.silence_timeout = world_.silence_timeout;
    options.random = options.draw_seed = [this] { return simulation_.random(); };
    options.log = [this, name = task.name()](std::string_view line) { facts_.log(str_cat(name, ": ", line)); };
    net::ClusterSpec spec = spec_;
    spec.set_task(task.job, task.index);
    task.server = std::make_unique<net::Server>(spec, options);
    if (task.job == "ps") return;
    task.client = std::make_shared<TrainingClient>(world_, task.index, task.process, task.server->target({"/job:ps"}));
    task.client->begin();
  }

  void crash(SimulatedTask& task, bool with_power) {
    if (task.process == nullptr) return;
    facts_.log(str_cat(task.name(), with_power ? " crashes" : " loses power"));
    ++facts_.num_crashes;
    with_power ? task.process->crash() : network_.power_off(*task.process);
    if (task.client != nullptr) task.client->end();
    task.client = nullptr;
    task.server = nullptr;
    task.process = nullptr;
  }

  /// As a program ends that is asked to.
  void stop(SimulatedTask& task) {
    if (task.process == nullptr) return;
    facts_.log(str_cat(task.name(), " stops"));
    task.server->stop();
    simulation_.schedule_after(simulation_.random_between(0s, 1s), [this, &task, process = task.process] {
      if (task.process == process) crash(task, true);
    });
  }

  void plan_fault(Clock::time_point until) {
    const Duration pause = simulation_.random_between(0s, world_.max_fault_pause);
    if (simulation_.after(pause) >= until) return;
    simulation_.schedule_after(pause, [this, until] {
      cause_fault(until);
      plan_fault(until);
    });
  }

  void cause_fault(Clock::time_point until) {
    const auto one = [&]() -> SimulatedTask& { return *tasks_[simulation_.random_below(tasks_.size())]; };
    SimulatedTask& task = one();
    const std::string a = task.name(), b = one().name();
    const auto soon = [&](Duration most) {
      return std::min(simulation_.random_between(0s, most), Duration(until - simulation_.now()));
    };
    const auto say = [&](std::string_view what) { facts_.log(str_cat("fault: ", a, " ", what, " ", b)); };
    switch (simulation_.random_below(9)) {
      case 0:
      case 1:
        crash(task, simulation_.chance(0.5));
        return start_after(task, soon(15s));
      case 2:
        stop(task);
        return start_after(task, 1s + soon(10s));
      case 3:
        say("is reset with");
        return network_.reset(a, b, simulation_.chance(0.5) ? 1 : 0.5);
      case 4:
        say("forgets");
        return network_.forget(a, b, simulation_.chance(0.5) ? 1 : 0.5);
      case 5:
      case 6: {
        say("is cut off from");
        const bool is_both = simulation_.chance(0.5);
        network_.block(a, b);
        if (is_both) network_.block(b, a);
        return simulation_.schedule_after(soon(25s), [this, a, b] {
          network_.unblock(a, b);
          network_.unblock(b, a);
        });
      }
      case 7:
        say("does not read from");
        return network_.stall(a, b, soon(20s));
      default: {
        facts_.log("fault: the network's delays");
        const Duration most = simulation_.random_between(1ms, 300ms);
        network_.set_link({.max_delay = most, .late_share = 0.02, .max_late = 2s});
        return simulation_.schedule_after(soon(20s), [this] { network_.set_link({}); });
      }
    }
  }

  net::Simulation simulation_;
  net::SimulatedNetwork network_;
  TrainingFacts facts_;
  World world_{simulation_, network_, facts_};
  net::ClusterSpec spec_;
  std::vector<std::unique_ptr<SimulatedTask>> tasks_;
};

}  // namespace

void TrainingFacts::acknowledge(int ps, std::int64_t value, std::int64_t least, const std::string& by) {
  std::int64_t& known = acknowledged[ps];
  if (value <= least) {
    fail(str_cat(by, " has added to ", least >> epoch_shift, ":", least & 0xffffffff, " of ps", ps, " and found ",
                 value >> epoch_shift, ":", value & 0xffffffff));
  }
  if ((value & 0xffffffff) >= next_attempt) {
    fail(str_cat("ps", ps, " has counted to ", value & 0xffffffff, " in ", next_attempt - 1, " attempts"));
  }
  known = std::max(known, value);
}

TrainingOutcome simulate_training(std::uint64_t seed, const TrainingOptions& options) {
  return SimulatedCluster(seed, options).run(options);
}

}  // namespace dflow::testing
