#include "simulated_training.hpp"

#include <algorithm>
#include <optional>
#include <utility>

using namespace std::chrono_literals;

namespace dflow::testing {
namespace {

/// The step that each worker may have reached, by the clock that they share.
class StalenessFacts final : public TrainingFacts {
 public:
  StalenessFacts(net::Simulation& simulation, bool is_verbose, int num_workers, std::int64_t staleness)
      : TrainingFacts(simulation, is_verbose), staleness_(staleness), most_(static_cast<std::size_t>(num_workers)) {}

  void note_crash(const std::string& task) override {
    TrainingFacts::note_crash(task);
    if (task == "ps0") forget_clock();
  }
  /// The number of the present clock; each new clock gets the next number.
  std::int64_t life() const noexcept { return life_; }

  /// A worker joins or leaves: its place is unknown from now on.
  void note_change(int worker) { most(worker).reset(); }
  /// The worker has finished its step before `step`, which it may begin.
  void note_begin(int worker, std::int64_t step, std::int64_t life) {
    if (life != life_) return;
    // A worker that is not known to have finished its step of number `most` has finished the steps before it.
    for (std::size_t other = 0; other < most_.size(); ++other) {
      if (!most_[other] || step - *most_[other] <= staleness_) continue;
      fail(str_cat("worker", worker, " may begin step ", step, " when worker", other, " has not finished step ",
                   *most_[other], ", with a staleness of ", staleness_));
    }
    most(worker) = step;
  }
  /// The worker does this step, and may have finished it from now on.
  void note_attempt(int worker, std::int64_t life) {
    if (life == life_ && most(worker)) ++*most(worker);
  }

 private:
  void forget_clock() {
    ++life_;
    std::fill(most_.begin(), most_.end(), std::nullopt);
  }
  std::optional<std::int64_t>& most(int worker) { return most_[static_cast<std::size_t>(worker)]; }

  const std::int64_t staleness_;
  std::vector<std::optional<std::int64_t>> most_;  ///< steps that a worker may have finished, if known
  std::int64_t life_ = 0;
};

/// A worker that trains with bounded staleness, leaves now and then, and comes back.
class StaleWorker final : public SimulatedWorker {
 public:
  StaleWorker(SimulatedWorld& world, StalenessFacts& facts, std::int64_t staleness, int index,
              std::shared_ptr<net::SimulatedProcess> process, std::shared_ptr<SessionTarget> target)
      : SimulatedWorker(world, index, std::move(process), std::move(target)),
        world_(world),
        facts_(facts),
        stale_(train::GradientDescent(1.0), {.staleness = staleness, .replicas = world.num_workers, .rank = index}) {
    build();
  }

 private:
  enum class Phase : std::uint8_t { looks, joins, trains };

  const Graph& graph() const override { return graph_; }

  void build() {
    const auto on_ps = [this](int p) { return graph_.device("/job:ps/task:" + std::to_string(p)); };
    std::vector<Variable<float>> applied;
    for (int w = 0; w < world_.num_workers; ++w) {
      const auto on = on_ps(w % world_.num_ps);
      applied.emplace_back(graph_, 0.0f, VariableOptions{.name = "applied" + std::to_string(w)});
    }
    const Variable<std::int64_t> global_step = [&] {
      const auto on = on_ps(0);
      return Variable<std::int64_t>(graph_, 0, {.name = "global_step", .trainable = false});
    }();
    for (const AnyVariable& variable : global_variables(graph_)) are_initialized_.push_back(variable.is_initialized());
    initialize_ = initialize_variables(graph_);
    const auto here = graph_.device("/job:worker/task:" + std::to_string(index()));
    step_ = stale_.minimize(applied[static_cast<std::size_t>(index())] * -1.0f, {.global_step = global_step});
    for (const Variable<float>& one : applied) fetched_.push_back(one.read());  // all tasks are then in a step
    next_step_ = graph_.output("stale_sync_replicas/StalenessClockWait_1");
    fetched_.push_back(next_step_);
    join_ = graph_.find("stale_sync_replicas/begin");
    leave_ = graph_.find("stale_sync_replicas/leave");
    known_ = graph_.output("stale_sync_replicas/known");
    gone_ = graph_.output("stale_sync_replicas/StalenessClockWatch");
  }

  void go_on(Session& session, bool is_fresh) override {
    if (is_fresh) {
      phase_ = Phase::looks;
      ++num_sessions_;
      if (index() == 0) watch(session);
    }
    if (phase_ == Phase::looks) return look();
    if (phase_ == Phase::joins) return join();
    world_.simulation.chance(0.03) ? leave() : step();
  }

  /// Looks whether all variables have values; the chief sets the missing values.
  void look() {
    run({}, are_initialized_, {}, [this](const Results& found) {
      const bool is_ready =
          std::all_of(found.begin(), found.end(), [](const AnyTensor& each) { return each.as<bool>().scalar(); });
      if (is_ready) phase_ = Phase::joins;
      if (is_ready) return go();
      if (index() != 0) return later(300ms);
      run({}, {}, {initialize_}, [this](const Results&) { go(); });
    });
  }

  void join() {
    const std::int64_t life = facts_.life();
    facts_.note_change(index());
    run({}, {}, {join_}, [this, life](const Results&) {
      life_ = life == facts_.life() ? life : -1;
      phase_ = Phase::trains;
      go();
    });
  }

  void leave() {
    facts_.note_change(index());
    phase_ = Phase::joins;
    run(
        {}, {}, {leave_}, [this](const Results&) { later(world_.simulation.random_between(0s, 3s)); },
        world_.simulation.random_between(1s, 20s));
  }

  /// Waits for the slowest worker, but not longer than the deadline; then it waits again.
  void step() {
    facts_.note_attempt(index(), life_);
    run(
        {}, fetched_, {step_},
        [this](const Results& results) {
          facts_.note_begin(index(), results.back().as<std::int64_t>().scalar(), life_);
          note_step();
        },
        world_.simulation.random_between(1s, 20s));
  }

  /// The chief's extra work: it learns which workers have left, and the clock then tells the workers so.
  void watch(Session& session) {
    const RunOptions options{.deadline = 10s};
    const std::vector<Feed> feeds{Feed(known_, gone_now_)};
    session.run_async_erased(
        options, feeds, std::span(&gone_, 1), {},
        [self = shared_from_this(), this, of = num_sessions_, &session](const Status& status, const Results& results) {
          if (!is_alive() || of != num_sessions_) return;
          if (status.ok()) {
            const auto are_all = [this] { return gone_now_.num_elements() == world_.num_workers; };
            const bool knew_all = are_all();
            gone_now_ = results[0].as<std::int32_t>();
            // The clock has heard that all are known to have left: a worker that trains again begins anew.
            if (knew_all && are_all()) gone_now_ = Tensor<std::int32_t>(Shape{0});
          }
          after(status.ok() ? 10ms : 1s, [this, of, &session] {
            if (has_session() && of == num_sessions_) watch(session);
          });
        });
  }

  SimulatedWorld& world_;
  StalenessFacts& facts_;
  Graph graph_;
  train::StaleSyncReplicas stale_;
  std::vector<AnyOutput> are_initialized_, fetched_;
  AnyOutput next_step_, known_, gone_;
  Operation initialize_, step_, join_, leave_;
  Phase phase_ = Phase::looks;
  std::int64_t life_ = -1;  ///< of the clock that the worker has joined
  int num_sessions_ = 0;
  Tensor<std::int32_t> gone_now_{Shape{0}};
};

}  // namespace

TrainingOutcome simulate_stale_training(std::uint64_t seed, const TrainingOptions& options) {
  net::Simulation simulation(seed, {.num_threads = 2});
  net::SimulatedNetwork network(simulation);
  const int num_workers = static_cast<int>(2 + simulation.random_below(3));
  const std::int64_t staleness = std::vector{0, 1, 2, 5}[simulation.random_below(4)];
  StalenessFacts facts(simulation, options.is_verbose, num_workers, staleness);
  SimulatedWorld world{.simulation = simulation, .network = network, .facts = facts};
  world.num_ps = static_cast<int>(1 + simulation.random_below(2));
  world.num_workers = num_workers;
  world.max_pause = simulation.chance(0.3) ? 50ms : 900ms;
  world.draw_faults();
  SimulatedCluster cluster(world, [&](int index, const auto& process, const auto& target) {
    return std::make_shared<StaleWorker>(world, facts, staleness, index, process, target);
  });
  return cluster.run(options);
}

}  // namespace dflow::testing
