#include "simulated_training.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace df = dflow;
using namespace std::chrono_literals;

namespace dflow::testing {
namespace {

/// Checks the values of counters and steps.
class CountingFacts final : public TrainingFacts {
 public:
  using TrainingFacts::TrainingFacts;

  /// Called by a kernel that runs in each task of a step, with its feeds.
  void witness(const std::string& device, std::uint64_t incarnation, std::uint64_t step, std::int64_t attempt);
  /// A worker added one to a counter and then read `value`; when it began, it knew of `least`.
  void acknowledge(int ps, std::int64_t value, std::int64_t least, const std::string& by);

  std::map<int, std::int64_t> acknowledged;  ///< the largest value that any worker has read, by ps
  std::int64_t next_attempt = 1;
  std::int64_t next_epoch = 1;

 private:
  std::set<std::pair<std::uint64_t, std::int64_t>> seen_;  ///< the attempts that an incarnation has run
  std::map<std::int64_t, std::uint64_t> steps_;            ///< of attempts
  std::map<std::uint64_t, std::int64_t> attempts_;         ///< of steps
};

/// Hands on its input, and reports that it has run.
struct Witness : df::Op<"Witness", df::TypeList<std::int64_t>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto witness_ops = df::standard_ops + df::ops<Witness>;
constinit thread_local CountingFacts* witnessed = nullptr;

}  // namespace
}  // namespace dflow::testing

template <>
struct dflow::Kernel<dflow::testing::Witness, dflow::Cpu, std::int64_t> {
  void operator()(KernelContext& context) const {
    const Tensor<std::int64_t> attempt = context.input<std::int64_t>(0);
    if (testing::CountingFacts* const facts = testing::witnessed; facts != nullptr) {
      facts->witness(context.device().name, context.device().incarnation, context.step().step_id, attempt.scalar());
    }
    context.set_output(0, attempt);
  }
};

namespace dflow::testing {
namespace {

void CountingFacts::witness(const std::string& device, std::uint64_t incarnation, std::uint64_t step,
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

/// A counter begins with a number that no other initialisation has.
constexpr int epoch_shift = 32;

void CountingFacts::acknowledge(int ps, std::int64_t value, std::int64_t least, const std::string& by) {
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

/// A worker that adds one to counters on parameter servers.
class CountingWorker final : public SimulatedWorker {
 public:
  CountingWorker(SimulatedWorld& world, CountingFacts& facts, bool has_large_tensors, int index,
                 std::shared_ptr<net::SimulatedProcess> process, std::shared_ptr<SessionTarget> target)
      : SimulatedWorker(world, index, std::move(process), std::move(target)),
        simulation_(world.simulation),
        facts_(facts),
        num_ps_(world.num_ps),
        has_large_tensors_(has_large_tensors) {
    attempt_ = placeholder<std::int64_t>(graph_, {});
    epoch_ = placeholder<std::int64_t>(graph_, {});
    for (int p = 0; p < num_ps_; ++p) build(p);
  }

 private:
  const Graph& graph() const override { return graph_; }

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
    if (!has_large_tensors_) return;
    // Too large to be sent unasked.
    const auto large = broadcast_to(cast<float>(begun), constant(graph_, Tensor<std::int32_t>({1}, {20'000})));
    const auto here = graph_.device("/job:worker/task:" + std::to_string(index()));
    large_.push_back(reduce_max(large));
  }

  void go_on(Session&, bool is_fresh) override {
    if (is_fresh) is_ready_ = false;
    is_ready_ ? step() : look();
  }

  /// Looks whether all variables have values; the chief sets the missing values.
  void look() {
    run({}, are_initialized_, {}, [this](const Results& found) {
      std::vector<int> missing;
      for (int p = 0; p < num_ps_; ++p) {
        if (!found[static_cast<std::size_t>(p)].as<bool>().scalar()) missing.push_back(p);
      }
      is_ready_ = missing.empty();
      if (missing.empty()) return go();
      if (index() != 0) return later(300ms);
      initialize(missing.front());
    });
  }

  void initialize(int p) {
    const std::int64_t epoch = facts_.next_epoch++;
    facts_.log(str_cat(name(), " initialises ps", p, " with ", epoch));
    run({{epoch_, Tensor<std::int64_t>(epoch << epoch_shift)}}, {}, {initialize_[static_cast<std::size_t>(p)]},
        [this](const Results&) { go(); });
  }

  /// Adds one on all parameter servers, or on one of them.
  void step() {
    CountingFacts& facts = facts_;
    const std::int64_t attempt = facts.next_attempt++;
    std::vector<int> on;
    const bool is_on_all = simulation_.chance(0.6);
    for (int p = 0; p < num_ps_; ++p) {
      if (is_on_all || p == index() % num_ps_) on.push_back(p);
    }
    const bool is_large = has_large_tensors_ && simulation_.chance(0.2);
    std::vector<AnyOutput> fetched;
    std::vector<std::int64_t> least;  // the counters' certain minimums
    for (const int p : on) {
      fetched.push_back(values_[static_cast<std::size_t>(p)]);
      fetched.push_back(echoes_[static_cast<std::size_t>(p)]);
      if (is_large) fetched.push_back(large_[static_cast<std::size_t>(p)]);
      least.push_back(facts.acknowledged[p]);
    }
    run({{attempt_, Tensor<std::int64_t>(attempt)}}, fetched, {},
        [this, attempt, on, least, is_large](const Results& results) {
          finish_step(attempt, on, least, is_large, results);
        });
  }

  void finish_step(std::int64_t attempt, const std::vector<int>& on, const std::vector<std::int64_t>& least,
                   bool is_large, const Results& results) {
    CountingFacts& facts = facts_;
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
    note_step();
  }

  net::Simulation& simulation_;
  CountingFacts& facts_;
  const int num_ps_;
  const bool has_large_tensors_;
  Graph graph_;
  Output<std::int64_t> attempt_, epoch_;
  std::vector<AnyOutput> are_initialized_, values_, echoes_, large_;
  std::vector<Operation> initialize_;
  bool is_ready_ = false;
};

/// Tells kernels of this thread which facts to report to.
struct Witnessing {
  explicit Witnessing(CountingFacts& facts) { witnessed = &facts; }
  ~Witnessing() { witnessed = nullptr; }
  Witnessing(const Witnessing&) = delete;
  Witnessing& operator=(const Witnessing&) = delete;
};

}  // namespace

TrainingOutcome simulate_training(std::uint64_t seed, const TrainingOptions& options) {
  net::Simulation simulation(seed, {.num_threads = 2});
  net::SimulatedNetwork network(simulation);
  CountingFacts facts(simulation, options.is_verbose);
  SimulatedWorld world{.simulation = simulation, .network = network, .facts = facts, .ops = witness_ops};
  world.num_ps = static_cast<int>(1 + simulation.random_below(3));
  world.num_workers = static_cast<int>(1 + simulation.random_below(4));
  const bool has_large_tensors = simulation.chance(0.3);
  world.max_pause = simulation.chance(0.3) ? 50ms : 900ms;
  world.draw_faults();
  const Witnessing witnessing(facts);
  SimulatedCluster cluster(world, [&](int index, const auto& process, const auto& target) {
    return std::make_shared<CountingWorker>(world, facts, has_large_tensors, index, process, target);
  });
  return cluster.run(options);
}

}  // namespace dflow::testing
