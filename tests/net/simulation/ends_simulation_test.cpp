// Training in step in simulated clusters, whose tasks are told to end, are killed and are cut off in any order: the
// shipped SyncReplicas, Supervisor and Server::join, on a virtual clock.
#include <dflow/train/replicas/stale_sync_replicas.hpp>
#include <dflow/train/replicas/sync_replicas.hpp>

#include <dflow/base/threads/wait_until.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include "catch.hpp"
#include "simulated_programs.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace dflow::testing {
namespace {

/// A kernel that writes or reads files in the simulation's thread.
template <void (*work)(KernelContext&)>
struct FilesAtOnce final : AnyKernel {
  void run(KernelContext& context) const override { work(context); }
  static std::unique_ptr<AnyKernel> make(const KernelInit&) { return std::make_unique<FilesAtOnce>(); }
};

OpSet ops_with_files_at_once() {
  return {
      standard_ops,
      {KernelTable("CPU", {{.op = &op_def<SaveV2>, .make = &FilesAtOnce<&detail::save_shard>::make},
                           {.op = &op_def<RestoreV2>, .make = &FilesAtOnce<&detail::restore_tensors>::make},
                           {.op = &op_def<MergeV2Checkpoints>, .make = &FilesAtOnce<&detail::merge_shards>::make}})}};
}

constexpr std::int64_t num_features = 4;

/// The parameters of a training: two runs of equal parameters have equal results.
struct EndingModel {
  int num_ps = 1, num_workers = 3;
  std::int64_t backups = 0, steps = 20;
  bool is_stale = false;  ///< StaleSyncReplicas, in which each worker makes the steps
  auto operator<=>(const EndingModel&) const = default;
};

/// What happens to a cluster that trains.
struct EndingSchedule {
  EndingModel model;
  std::optional<Duration> patience;
  train::LateReplicas late = train::LateReplicas::drop;
  Duration silence_timeout = 10s;
  Duration max_work = 100ms;                    ///< of a replica on its part of a step
  bool body_stops = false;                      ///< the body passes the supervisor's stop token on
  std::map<std::string, Duration> starts = {};  ///< when tasks start; the others do so in the first second
  std::int64_t save_every_steps = 0;
  bool saves = true;
  enum class What : std::uint8_t { tell, kill, power_off, restart, cut, heal, reset };
  struct Event {
    Duration at{};
    What what = What::tell;
    std::string task, other = {};
  };
  std::vector<Event> events;
};

struct EndingOutcome {
  std::string failure;  ///< empty: none
  std::uint64_t num_events = 0;
  std::int64_t saved_step = -1;
  Duration took{};                  ///< until the last living worker had ended, after the last event
  std::map<std::string, int> ends;  ///< of tasks, by code
  int num_told = 0;                 ///< replicas with a line that says why they train no more
  std::string waits_for;            ///< a line that names replicas
  std::uint64_t trace_hash = 0;
  /// The model after each number of steps, of a run without events.
  std::map<std::int64_t, std::vector<float>> models;
  bool has_compared_bits = false;
};

class EndingCluster {
 public:
  EndingCluster(std::uint64_t seed, const EndingSchedule& schedule, bool is_verbose);
  ~EndingCluster();
  /// `undisturbed` has the models of a run without events, if the schedule is to end with the same bits.
  EndingOutcome run(const EndingOutcome* undisturbed);

 private:
  using What = EndingSchedule::What;
  /// A task from one start to its end.
  struct Life {
    std::string job;
    int index = 0;
    std::shared_ptr<net::SimulatedProcess> process;
    std::shared_ptr<ThreadPool> pool;
    std::unique_ptr<net::Server> server;
    std::stop_source told;
    bool was_told = false, was_killed = false, has_ended = false;
    bool has_met_chief = true;  ///< or may have: the chief ended later than this task started
    std::int64_t made = 0;      ///< steps, of which none can have been lost
    Status status;
    std::string name() const { return job + std::to_string(index); }
    bool is_chief() const { return job == "worker" && index == 0; }
  };
  /// What the test knows of a task, over all its lives.
  struct Task {
    std::shared_ptr<Life> life;
    bool was_told = false;
  };

  void start(const std::string& name);
  void kill(const std::string& name, bool with_power);
  void tell(const std::string& name);
  void do_event(const EndingSchedule::Event& event);
  void serve(const std::shared_ptr<Life>& life);
  void train(const std::shared_ptr<Life>& life);
  void train_in(Life& life);
  void train_stale_in(Life& life);
  train::SupervisorOptions options_of(Life& life, bool is_chief);
  void end(Life& life, Status status);
  void disturb();
  std::int64_t newest() const;
  void fail(std::string what);
  void log(std::string_view line) const;
  void check_trained(const Life& life);
  void check_end(const Life& life);
  void tell_the_rest();
  void check_model(const EndingOutcome& undisturbed);
  bool are_workers_over() const;

  const EndingSchedule schedule_;
  const bool is_verbose_;
  TemporaryFolder folder_;
  net::Simulation simulation_;
  net::SimulatedNetwork network_;
  SimulatedPrograms programs_;
  std::shared_ptr<net::SimulatedProcess> machine_ = simulation_.start("machine");  ///< its clock outlives the tasks
  OpSet ops_ = ops_with_files_at_once();
  net::ClusterSpec spec_;
  std::map<std::string, Task> tasks_;
  std::vector<std::shared_ptr<Life>> lives_;
  EndingOutcome outcome_;
  std::size_t num_to_start_ = 0;
  std::int64_t made_ = 0;  ///< steps that cannot have been lost
  int era_ = 0;            ///< grows when steps may be lost
  bool counts_ = false;    ///< a leader leads, and nothing has disturbed it
  bool is_disturbed_ = false, is_chief_gone_ = false, are_all_told_ = false;
};

EndingCluster::EndingCluster(std::uint64_t seed, const EndingSchedule& schedule, bool is_verbose)
    : schedule_(schedule), is_verbose_(is_verbose), simulation_(seed), network_(simulation_), programs_(simulation_) {
  const auto add = [this](const std::string& job, int index) {
    const std::string name = job + std::to_string(index);
    spec_.add_task(job, index, name);
    tasks_[name];
  };
  for (int p = 0; p < schedule_.model.num_ps; ++p) add("ps", p);
  for (int w = 0; w < schedule_.model.num_workers; ++w) add("worker", w);
}

EndingCluster::~EndingCluster() {
  for (auto& [name, task] : tasks_) kill(name, false);
  const auto are_over = [this] {
    programs_.run();
    return programs_.are_over();
  };
  if (!simulation_.run_until(are_over, simulation_.after(1h))) std::abort();  // threads that nothing ends
  lives_.clear();
  tasks_.clear();
}

void EndingCluster::fail(std::string what) {
  log(str_cat("FAILED: ", what));
  if (outcome_.failure.empty()) outcome_.failure = std::move(what);
}

void EndingCluster::log(std::string_view line) const {
  if (!is_verbose_) return;
  const double seconds = std::chrono::duration<double>(simulation_.now().time_since_epoch()).count();
  std::fprintf(stderr, "%10.6f %.*s\n", seconds, static_cast<int>(line.size()), line.data());
}

// ---- the tasks ----

void EndingCluster::start(const std::string& name) {
  const auto life = std::make_shared<Life>();
  life->job = name.substr(0, name.size() - 1);
  life->index = name.back() - '0';
  life->has_met_chief = !is_chief_gone_;
  log(str_cat(name, " starts"));
  life->process = simulation_.start(name);
  life->pool = std::make_shared<ProgramPool>(programs_, life->process->pool());
  net::ServerOptions options;
  options.ops = ops_;
  options.pool = life->pool;
  options.clock = life->process->clock();
  options.transport = network_.transport(life->process);
  options.startup_timeout = 10s;
  options.silence_timeout = schedule_.silence_timeout;
  options.random = options.draw_seed = [this] { return simulation_.random(); };
  options.log = [this, name](std::string_view line) { log(str_cat(name, ": ", line)); };
  options.callbacks = std::make_shared<InlinePool>();
  net::ClusterSpec spec = spec_;
  spec.set_task(life->job, life->index);
  life->server = std::make_unique<net::Server>(spec, options);
  tasks_.at(name).life = life;
  lives_.push_back(life);
  programs_.start([this, life] { life->job == "ps" ? serve(life) : train(life); });
}

void EndingCluster::end(Life& life, Status status) {
  log(str_cat(life.name(), life.was_killed ? " is gone" : " has ended: ", status.to_string()));
  life.status = std::move(status);
  life.has_ended = true;
  if (!life.was_killed) check_end(life);
  if (!life.was_killed && life.is_chief()) is_chief_gone_ = true;
  if (!life.was_killed && life.job == "ps") disturb();
  life.server = nullptr;
  life.process->crash();
}

void EndingCluster::serve(const std::shared_ptr<Life>& life) {
  life->server->join({.stop = life->told.get_token()});
  end(*life, Status());
}

void EndingCluster::train(const std::shared_ptr<Life>& life) {
  Status status;
  try {
    schedule_.model.is_stale ? train_stale_in(*life) : train_in(*life);
  } catch (...) {
    status = status_of_current_exception();
  }
  end(*life, std::move(status));
}

/// A user's program.
void EndingCluster::train_in(Life& life) {
  const EndingModel& model = schedule_.model;
  net::ClusterSpec cluster = spec_;
  cluster.set_task(life.job, life.index);
  const int rank = cluster.replica_rank();
  Graph graph({.seed = 3});
  const auto on = graph.device(train::replica_device(cluster));
  const auto x = placeholder<float>(graph, {num_features});
  const Variable<float> w(graph, constant(graph, Tensor<float>::full({num_features}, 0.5f)), {.name = "w"});
  const Variable<float> b(graph, 0.1f, {.name = "b"});
  const auto loss = reduce_mean(square(w.read() * x + b.read() - 0.3f));
  train::SyncReplicas sync(train::Adam(0.05f), {.aggregate = model.num_workers - model.backups,
                                                .replicas = model.num_workers,
                                                .rank = rank,
                                                .patience = schedule_.patience,
                                                .late = schedule_.late,
                                                .end_patience = 10s});
  const auto step_op = sync.minimize(loss);
  const auto clock = machine_->clock();
  train::SupervisorOptions options = sync.supervised(options_of(life, cluster.is_chief()));
  options.lead = [this, lead = options.lead, &life](const train::Leading& with) {
    if (!life.was_killed) counts_ = true;  // since the last disturbance
    lead(with);
  };
  train::Supervisor supervisor(graph, options);
  sync.train(supervisor, model.steps, [&](Session& session, std::int64_t step) {
    const int era = era_;
    if (life.is_chief() && schedule_.events.empty()) {
      const auto [values, bias] = session.run(w.read(), b.read());
      outcome_.models[step].assign(values.begin(), values.end());
      outcome_.models[step].push_back(bias.scalar());
    }
    dflow::detail::wait_until(*life.pool, *clock, clock->after(simulation_.random_between(0s, schedule_.max_work)),
                              supervisor.stop_token());
    Tensor<float> batch(Shape{num_features});
    for (std::int64_t i = 0; i < num_features; ++i) {
      batch(i) = std::sin(static_cast<float>(1 + step * 31 + rank * 7 + i * 3));
    }
    RunOptions run;
    if (schedule_.body_stops) run.stop = supervisor.stop_token();
    session.run(run, {{x, batch}}, step_op);
    // The last step of a replica that leaves may not have been made.
    if (life.was_killed || life.was_told || !counts_ || era != era_) return;
    made_ = std::max(made_, step + 1);
    life.made = step + 1;
  });
  if (life.was_killed) return;
  check_trained(life);
  if (schedule_.events.empty() && life.is_chief()) {
    const auto [values, bias] = supervisor.run([&](Session& session) { return session.run(w.read(), b.read()); });
    outcome_.models[model.steps].assign(values.begin(), values.end());
    outcome_.models[model.steps].push_back(bias.scalar());
  }
  sync.finish(supervisor);
}

train::SupervisorOptions EndingCluster::options_of(Life& life, bool is_chief) {
  train::SupervisorOptions options;
  options.session.ops = ops_;
  options.session.target = life.server->target({"/job:ps"});
  options.session.clock = life.process->clock();
  options.session.callbacks = life.process->pool();
  options.session.incarnation = simulation_.random();
  options.is_chief = is_chief;
  if (schedule_.saves) options.checkpoint_dir = folder_.path();
  options.saver_options.clock = machine_->clock();
  options.save_every_steps = schedule_.save_every_steps;
  options.stop = life.told.get_token();
  options.log = [this, name = life.name()](std::string_view line) {
    if (line.find("this replica trains no more") != std::string_view::npos) ++outcome_.num_told;
    if (line.find("others wait: ") != std::string_view::npos) outcome_.waits_for = line;
    log(str_cat(name, ": ", line));
  };
  options.on_save_error = [this, name = life.name()](const Status& status) {
    log(str_cat(name, ": no save: ", status.to_string()));
  };
  options.ready_timeout = 20s;
  options.clock = machine_->clock();
  options.threads = std::make_shared<ProgramPool>(programs_, nullptr);
  return options;
}

void EndingCluster::train_stale_in(Life& life) {
  const EndingModel& model = schedule_.model;
  net::ClusterSpec cluster = spec_;
  cluster.set_task(life.job, life.index);
  Graph graph({.seed = 3});
  const auto on = graph.device(train::replica_device(cluster));
  const Variable<float> w(graph, 0.5f, {.name = "w"});
  train::StaleSyncReplicas stale(
      train::GradientDescent(0.05f),
      {.staleness = 1, .replicas = model.num_workers, .rank = cluster.replica_rank(), .patience = schedule_.patience});
  const auto step_op = stale.minimize(square(w.read() - 0.3f));
  train::Supervisor supervisor(graph, stale.supervised(options_of(life, cluster.is_chief())));
  const auto clock = machine_->clock();
  try {
    for (std::int64_t step = 0; step < model.steps && !supervisor.should_stop(); ++step) {
      supervisor.run([&](Session& session) {
        dflow::detail::wait_until(*life.pool, *clock, clock->after(simulation_.random_between(0s, schedule_.max_work)),
                                  supervisor.stop_token());
        session.run(step_op);
      });
      life.made = step + 1;
    }
  } catch (const Error& error) {
    if (error.status().code() == Code::out_of_range) {  // the chief was told to stop before it led
      log(str_cat(life.name(), ": ", error.status().message()));
      ++outcome_.num_told;
      return;
    }
    if (error.status().code() != Code::cancelled || !supervisor.should_stop()) throw;
  }
  stale.finish(supervisor);
}

// ---- what happens ----

void EndingCluster::kill(const std::string& name, bool with_power) {
  const std::shared_ptr<Life> life = tasks_.at(name).life;
  if (life == nullptr || life->has_ended || life->was_killed) return;
  log(str_cat(name, with_power ? " loses power" : " is killed"));
  life->was_killed = true;
  if (life->job == "ps" || life->is_chief()) disturb();
  is_disturbed_ = true;
  with_power ? network_.power_off(*life->process) : life->process->crash();
  life->server->stop();
  life->told.request_stop();  // its threads come to their ends, and nobody sees it
}

void EndingCluster::tell(const std::string& name) {
  Task& task = tasks_.at(name);
  log(str_cat(name, " is told to end"));
  task.was_told = true;
  if (task.life == nullptr) is_disturbed_ = true;  // it is never started
  if (task.life == nullptr || task.life->has_ended) return;
  task.life->was_told = true;
  task.life->told.request_stop();
}

void EndingCluster::do_event(const EndingSchedule::Event& event) {
  switch (event.what) {
    case What::tell:
      return tell(event.task);
    case What::kill:
    case What::power_off:
      return kill(event.task, event.what == What::power_off);
    case What::restart: {
      Task& task = tasks_.at(event.task);
      const bool is_down = task.life != nullptr && task.life->was_killed;
      if (is_down && !task.was_told) start(event.task);
      return;
    }
    case What::cut:
      log(str_cat(event.task, " is cut off from ", event.other));
      disturb();
      network_.block(event.task, event.other);
      return network_.block(event.other, event.task);
    case What::heal:
      log(str_cat(event.task, " reaches ", event.other));
      network_.unblock(event.task, event.other);
      return network_.unblock(event.other, event.task);
    case What::reset:
      log(str_cat(event.task, " is reset with ", event.other));
      disturb();
      return network_.reset(event.task, event.other);
  }
}

/// Steps that were made so far may be lost.
void EndingCluster::disturb() {
  ++era_;
  made_ = 0;
  counts_ = false;
  is_disturbed_ = true;
}

std::int64_t EndingCluster::newest() const {
  const std::optional<std::string> path = train::latest_checkpoint(folder_.path());
  return path ? std::atoll(path->substr(path->rfind('-') + 1).c_str()) : -1;
}

bool EndingCluster::are_workers_over() const {
  return std::all_of(lives_.begin(), lives_.end(),
                     [](const auto& life) { return life->has_ended || life->was_killed || life->job == "ps"; });
}

/// `train` has returned.
void EndingCluster::check_trained(const Life& life) {
  if (tasks_.at("worker0").was_told) return;  // the chief saves, and nobody waits for that
  if (!life.was_told && !is_chief_gone_ && newest() < schedule_.model.steps) {
    fail(str_cat(life.name(), " has trained, and the newest checkpoint is of step ", newest()));
  }
  if (life.was_told && counts_ && !is_disturbed_ && newest() < life.made) {
    fail(str_cat(life.name(), " has left, and the newest checkpoint is of step ", newest(), ", of ", life.made));
  }
}

void EndingCluster::check_end(const Life& life) {
  ++outcome_.ends[std::string(code_name(life.status.code()))];
  if (life.status.ok()) return;
  const std::string text = life.status.to_string();
  if (life.was_told) return fail(str_cat(life.name(), " was told to end, and ends with ", text));
  const auto names = [&](std::string_view who) { return text.find(who) != std::string::npos; };
  const bool is_late = schedule_.patience && schedule_.late == train::LateReplicas::fail;
  if (is_late && names("have not arrived")) return;
  if (!is_disturbed_ && life.has_met_chief) return fail(str_cat(life.name(), " ends with ", text));
  if (!names("chief") && !names("/job:ps")) fail(str_cat(life.name(), " names nobody: ", text));
}

/// Without patience, replicas that are gone for good are waited for, until all are told to end. Backups stand in for
/// replicas that have left, too.
void EndingCluster::tell_the_rest() {
  std::int64_t num_gone = 0, num_left = 0;
  std::string waiting;
  for (const auto& [name, task] : tasks_) {
    if (!name.starts_with("worker")) continue;
    const bool is_gone = task.life == nullptr || task.life->was_killed;
    if (is_gone) ++num_gone;
    if (!is_gone && task.life->has_ended) ++num_left;
    if (!is_gone && !task.life->has_ended) waiting += str_cat(" ", name);
  }
  const bool may_wait = !schedule_.patience && num_gone > 0 && num_gone + num_left > schedule_.model.backups;
  if (!may_wait) fail(str_cat("there is no end of", waiting));
  are_all_told_ = true;
  for (const auto& [name, task] : tasks_) {
    if (name.starts_with("worker")) tell(name);
  }
}

void EndingCluster::check_model(const EndingOutcome& undisturbed) {
  const auto expected = undisturbed.models.find(outcome_.saved_step);
  if (expected == undisturbed.models.end()) return fail(str_cat("step ", outcome_.saved_step, " was saved"));
  PosixFileSystem files;
  const CheckpointReader reader(files, *train::latest_checkpoint(folder_.path()));
  const Tensor<float> w = reader.read("w").as<float>(), b = reader.read("b").as<float>();
  std::vector<float> found(w.begin(), w.end());
  found.push_back(b.scalar());
  outcome_.has_compared_bits = true;
  if (found != expected->second) fail(str_cat("other bits at step ", outcome_.saved_step));
}

EndingOutcome EndingCluster::run(const EndingOutcome* undisturbed) {
  Duration last{};
  num_to_start_ = tasks_.size();
  for (const auto& [name, task] : tasks_) {
    const auto given = schedule_.starts.find(name);
    Duration at = schedule_.events.empty() ? 0s : simulation_.random_between(0s, 1s);
    if (given != schedule_.starts.end()) at = given->second;
    simulation_.schedule_after(at, [this, name = name] {
      --num_to_start_;
      if (!tasks_.at(name).was_told) start(name);
    });
    last = std::max(last, at);
  }
  for (const EndingSchedule::Event& event : schedule_.events) {
    simulation_.schedule_after(event.at, [this, event] { do_event(event); });
    last = std::max(last, event.at);
  }
  const Clock::time_point begin = simulation_.now();
  const auto turn = [this] {
    programs_.run();
    return !outcome_.failure.empty();
  };
  const auto is_over = [&] {
    return turn() || (num_to_start_ == 0 && simulation_.now() >= begin + last && are_workers_over());
  };
  if (!simulation_.run_until(is_over, begin + last + 60s)) {
    tell_the_rest();
    if (!simulation_.run_until(is_over, begin + last + 120s)) {
      for (const auto& [name, task] : tasks_) {
        if (task.life->job == "worker" && !task.life->has_ended && !task.life->was_killed)
          fail(str_cat(name, " hangs"));
      }
    }
  }
  outcome_.took = simulation_.now() - begin - last;
  outcome_.saved_step = newest();
  if (outcome_.failure.empty() && made_ > 0 && outcome_.saved_step < made_) {
    fail(str_cat(made_, " steps were made, and the newest checkpoint has ", outcome_.saved_step));
  }
  const bool has_equal_bits = undisturbed != nullptr && !are_all_told_ && outcome_.saved_step >= 0;
  if (outcome_.failure.empty() && has_equal_bits) check_model(*undisturbed);
  outcome_.num_events = simulation_.num_events();
  outcome_.trace_hash = simulation_.trace_hash();
  return outcome_;
}

/// Whether each step takes the gradients of all replicas, whatever happens: the model then depends on the step alone.
bool has_equal_bits(const EndingSchedule& schedule) {
  const bool do_replicas_leave =
      std::any_of(schedule.events.begin(), schedule.events.end(), [](const EndingSchedule::Event& event) {
        return event.what == EndingSchedule::What::tell && event.task.starts_with("worker") && event.task != "worker0";
      });
  return schedule.model.backups == 0 && !schedule.patience && !do_replicas_leave;
}

EndingOutcome run_undisturbed(const EndingModel& model) {
  EndingSchedule schedule;
  schedule.model = model;
  return EndingCluster(1, schedule, false).run(nullptr);
}

std::uint64_t number_of_environment(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The schedule of a seed.
EndingSchedule draw_ends(std::uint64_t seed) {
  using What = EndingSchedule::What;
  net::Simulation chance(seed * 2 + 1);  // for its random numbers
  EndingSchedule drawn;
  EndingModel& model = drawn.model;
  model.num_ps = static_cast<int>(1 + chance.random_below(2));
  model.num_workers = static_cast<int>(2 + chance.random_below(3));
  if (chance.chance(0.3)) model.backups = 1;
  model.steps = chance.chance(0.3) ? 5 : 40;
  if (chance.chance(0.3)) drawn.patience = 3s;
  if (chance.chance(0.2)) drawn.late = train::LateReplicas::fail;
  drawn.silence_timeout = chance.chance(0.5) ? 10s : 2s;
  drawn.max_work = chance.chance(0.3) ? 10ms : 200ms;
  drawn.body_stops = chance.chance(0.5);
  if (chance.chance(0.5)) drawn.save_every_steps = 3;
  std::vector<std::string> names;
  for (int p = 0; p < model.num_ps; ++p) names.push_back(str_cat("ps", p));
  for (int w = 0; w < model.num_workers; ++w) names.push_back(str_cat("worker", w));
  const auto one = [&]() -> const std::string& { return names[chance.random_below(names.size())]; };
  const auto at = [&](Duration from, Duration most) { return from + chance.random_between(0s, most); };
  const Duration spread = std::array<Duration, 4>{50ms, 300ms, 1s, 5s}[chance.random_below(4)];
  // From the moment when the first task starts, or when all have begun for a while.
  const Duration from = chance.chance(0.3) ? 0s : at(2s, 3s);
  const bool tells = chance.chance(0.7), kills = chance.chance(0.5), cuts = chance.chance(0.3);
  if (tells) {
    for (const std::string& name : names) {
      if (chance.chance(0.5)) drawn.events.push_back({at(from, spread), What::tell, name});
    }
  }
  for (std::uint64_t i = kills ? 1 + chance.random_below(3) : 0; i > 0; --i) {
    const std::string name = one();
    const Duration when = at(from, spread);
    drawn.events.push_back({when, chance.chance(0.5) ? What::kill : What::power_off, name});
    if (chance.chance(0.7)) drawn.events.push_back({at(when, 10s), What::restart, name});
  }
  for (std::uint64_t i = cuts ? 1 + chance.random_below(2) : 0; i > 0; --i) {
    const std::string a = one(), b = one();
    const Duration when = at(from, spread);
    if (a == b) continue;
    if (chance.chance(0.3)) {
      drawn.events.push_back({when, What::reset, a, b});
      continue;
    }
    drawn.events.push_back({when, What::cut, a, b});
    drawn.events.push_back({at(when, 15s), What::heal, a, b});
  }
  if (chance.chance(0.2)) drawn.starts[one()] = at(0s, 8s);  // others may be told before anybody leads
  return drawn;
}

}  // namespace
}  // namespace dflow::testing

// DFLOW_SIMULATION_SEEDS, DFLOW_SIMULATION_FIRST_SEED and DFLOW_SIMULATION_LOG, as for all simulated clusters.
TEST_CASE(
    "tasks that train in step end in time and save all steps, whoever is told to end, killed or cut off, and when",
    "[net][simulation]") {
  using namespace dflow::testing;
  constexpr std::uint64_t usual_count = is_sanitized ? 4 : 40;
  const std::uint64_t first = number_of_environment("DFLOW_SIMULATION_FIRST_SEED", 1);
  const std::uint64_t count = number_of_environment("DFLOW_SIMULATION_SEEDS", usual_count);
  const bool is_verbose = std::getenv("DFLOW_SIMULATION_LOG") != nullptr;
  std::map<EndingModel, EndingOutcome> undisturbed;
  EndingOutcome sum;
  int num_compared = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const EndingSchedule schedule = draw_ends(seed);
    const EndingOutcome* expected = nullptr;
    if (has_equal_bits(schedule)) {
      const auto [found, is_new] = undisturbed.try_emplace(schedule.model);
      if (is_new) found->second = run_undisturbed(schedule.model);
      CHECK(found->second.failure == "");
      expected = &found->second;
    }
    const EndingOutcome outcome = EndingCluster(seed, schedule, is_verbose).run(expected);
    INFO("DFLOW_SIMULATION_FIRST_SEED=" << seed << " DFLOW_SIMULATION_SEEDS=1 DFLOW_SIMULATION_LOG=1 shows it");
    CHECK(outcome.failure == "");
    num_compared += outcome.has_compared_bits ? 1 : 0;
    sum.took = std::max(sum.took, outcome.took);
    sum.num_events += outcome.num_events;
    for (const auto& [code, ends] : outcome.ends) sum.ends[code] += ends;
  }
  if (count <= usual_count && !is_verbose) return;
  std::cout << count << " schedules: " << sum.num_events << " events, " << num_compared << " models compared, ended "
            << std::chrono::duration<double>(sum.took).count() << " s after the last event at the latest";
  for (const auto& [code, ends] : sum.ends) std::cout << ", " << ends << " tasks with " << code;
  std::cout << "\n";
}

TEST_CASE("tasks that train with bounded staleness end in time, whoever is told to end, killed or cut off, and when",
          "[net][simulation]") {
  using namespace dflow::testing;
  const std::uint64_t first = number_of_environment("DFLOW_SIMULATION_FIRST_SEED", 1);
  const std::uint64_t count = number_of_environment("DFLOW_SIMULATION_SEEDS", is_sanitized ? 4 : 20);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    EndingSchedule schedule = draw_ends(seed);
    schedule.model.is_stale = true;
    schedule.model.backups = 0;
    const EndingOutcome outcome =
        EndingCluster(seed, schedule, std::getenv("DFLOW_SIMULATION_LOG") != nullptr).run(nullptr);
    INFO("DFLOW_SIMULATION_FIRST_SEED=" << seed << " DFLOW_SIMULATION_SEEDS=1 DFLOW_SIMULATION_LOG=1 shows it");
    CHECK(outcome.failure == "");
  }
}

TEST_CASE("simulated programs do the same for the same seed", "[net][simulation]") {
  using namespace dflow::testing;
  const auto simulate = [](std::uint64_t seed) { return EndingCluster(seed, draw_ends(seed), false).run(nullptr); };
  for (const std::uint64_t seed : {1, 7, 53}) {
    const EndingOutcome one = simulate(seed), other = simulate(seed);
    CHECK(one.num_events == other.num_events);
    CHECK(one.took == other.took);
    CHECK(one.saved_step == other.saved_step);
    CHECK(one.ends == other.ends);
  }
  EndingSchedule schedule;  // without the names of files, which no two runs share
  schedule.saves = false;
  schedule.model.steps = 5;
  const auto trace = [&] { return EndingCluster(1, schedule, false).run(nullptr).trace_hash; };
  CHECK(trace() == trace());
}

TEST_CASE("a chief that is told to stop before it leads ends the training of all, and says so", "[net][simulation]") {
  using namespace dflow::testing;
  EndingSchedule schedule;
  schedule.model.num_ps = 2;
  schedule.starts = {{"ps1", 6s}};
  schedule.events = {{3s, EndingSchedule::What::tell, "worker0"}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    schedule.model.is_stale = seed > 5;
    const EndingOutcome outcome = EndingCluster(seed, schedule, false).run(nullptr);
    CHECK(outcome.failure == "");
    CHECK(outcome.ends == std::map<std::string, int>{{"OK", 3}});
    CHECK(outcome.num_told == 2);
    CHECK(outcome.took < 5s);  // of the simulation
    CHECK(outcome.saved_step == -1);
  }
}

TEST_CASE(
    "a replica that leaves before anybody has led is waited for no longer than a lost one when its barrier is lost",
    "[net][simulation]") {
  using namespace dflow::testing;
  using What = EndingSchedule::What;
  EndingSchedule schedule;
  schedule.patience = 3s;
  schedule.model.steps = 5;
  schedule.starts = {{"worker0", 12s}};
  schedule.events = {{4s, What::tell, "worker2"}, {7s, What::kill, "ps0"}, {8s, What::restart, "ps0"}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const EndingOutcome outcome = EndingCluster(seed, schedule, false).run(nullptr);
    CHECK(outcome.failure == "");
    CHECK(outcome.ends == std::map<std::string, int>{{"OK", 3}});
    CHECK(outcome.saved_step == 5);
    CHECK(outcome.took < 15s);  // of the simulation, since the chief has started
  }
}

TEST_CASE("replicas of bounded staleness go on when the chief is told to stop, and a dead one is named by a line",
          "[net][simulation]") {
  using namespace dflow::testing;
  using What = EndingSchedule::What;
  EndingSchedule schedule;
  schedule.model.is_stale = true;
  schedule.model.steps = 100;
  schedule.events = {{4s, What::tell, "worker0"}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const EndingOutcome told = EndingCluster(seed, schedule, false).run(nullptr);
    CHECK(told.failure == "");
    CHECK(told.ends == std::map<std::string, int>{{"OK", 3}});
    CHECK(told.saved_step > 0);
  }
  schedule.events = {{4s, What::power_off, "worker2"}, {90s, What::tell, "worker0"}, {91s, What::tell, "worker1"}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const EndingOutcome dead = EndingCluster(seed, schedule, false).run(nullptr);
    CHECK(dead.failure == "");
    CHECK(dead.ends == std::map<std::string, int>{{"OK", 2}});
    CHECK_THAT(dead.waits_for, Catch::Contains("replicas 2 have not finished step"));
    CHECK(dead.took < 15s);  // of the simulation
  }
}

TEST_CASE("replicas of bounded staleness end with an error that names the chief when it is lost for good",
          "[net][simulation]") {
  using namespace dflow::testing;
  EndingSchedule schedule;
  schedule.model.is_stale = true;
  schedule.model.steps = 100;
  schedule.patience = 3s;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    // Also in `finish`, between two calls that watch.
    schedule.events = {{seed <= 3 ? 4s : 8s, EndingSchedule::What::power_off, "worker0"}};
    if (seed > 3) schedule.model.steps = 5;
    const EndingOutcome outcome = EndingCluster(seed, schedule, false).run(nullptr);
    CHECK(outcome.failure == "");
    CHECK(outcome.ends == std::map<std::string, int>{{seed <= 3 ? "DEADLINE_EXCEEDED" : "OK", seed <= 3 ? 2 : 3}});
    CHECK(outcome.took < 45s);  // of the simulation: until it has been silent for long, and no other chief has come
  }
}

TEST_CASE("a chief that waits for others learns that a task was lost whose variables it does not need meanwhile",
          "[net][simulation]") {
  using namespace dflow::testing;
  using What = EndingSchedule::What;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    EndingSchedule schedule;
    schedule.model.is_stale = seed % 2 == 0;
    schedule.model.num_ps = 2;
    schedule.model.steps = 40;
    const std::string lost = seed % 4 < 2 ? "ps0" : "ps1";
    schedule.events = {{3s + 10ms * static_cast<int>(seed), What::kill, lost}, {5s, What::restart, lost}};
    const EndingOutcome outcome = EndingCluster(seed, schedule, false).run(nullptr);
    CAPTURE(seed);
    CHECK(outcome.failure == "");
    CHECK(outcome.ends == std::map<std::string, int>{{"OK", 3}});
    CHECK(outcome.took < 30s);  // of the simulation
  }
}
