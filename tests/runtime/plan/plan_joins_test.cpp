#include <dflow/runtime/plan/plan_joins.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"
#include "runtime/planned.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// Notes a number, with a weight.
struct NotedSum : Op<"NotedSum", TypeList<float>> {
  struct Attrs {
    std::int64_t mark = 0;
  };
  using Inputs = In<T, T>;  // weight, number
  using Outputs = Out<>;
  static constexpr bool is_stateful = true;
  static void infer(InferContext&) {}
};
/// Gives its input later.
struct LateValue : Op<"LateValue", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
/// Gives its input, or is dead if the input is negative.
struct DeadIfNegative : Op<"DeadIfNegative", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

/// The noted numbers, and how many kernels noted at once.
std::vector<float> noted_numbers;
std::vector<std::size_t> noted_at_once;

class JointNoted final : public AnyKernel {
 public:
  explicit JointNoted(std::size_t members) : AnyKernel(KernelTraits{.sees_dead_inputs = true}), members_(members) {}
  void run(KernelContext& context) const override {
    CHECK(context.num_inputs() == static_cast<int>(2 * members_));
    for (int i = 0; i < context.num_inputs(); i += 2) {
      if (context.is_input_dead(i) || context.is_input_dead(i + 1)) continue;
      noted_numbers.push_back(context.scalar_input<float>(i) * context.scalar_input<float>(i + 1));
    }
    noted_at_once.push_back(members_);
  }

 private:
  std::size_t members_;
};

}  // namespace

template <>
struct dflow::Kernel<NotedSum, Cpu, float> {
  static constexpr JointKernel joint{.same_inputs = 1,
                                     .max_held_bytes = 12,
                                     .held_bytes = [](const KernelInit& init) -> std::optional<std::int64_t> {
                                       if (!init.inputs[1].shape.is_fully_defined()) return std::nullopt;
                                       return 4 * *init.inputs[1].shape.num_elements();
                                     },
                                     .make = [](std::span<const KernelInit> members) -> std::unique_ptr<AnyKernel> {
                                       return std::make_unique<JointNoted>(members.size());
                                     }};

  void operator()(KernelContext& context) const {
    noted_numbers.push_back(context.scalar_input<float>(0) * context.scalar_input<float>(1));
    noted_at_once.push_back(1);
  }
};
template <>
struct dflow::Kernel<LateValue, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    done(Status());
  }
};
template <>
struct dflow::Kernel<DeadIfNegative, Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const {
    if (context.scalar_input<float>(0) < 0) return context.set_output_dead(0);
    context.set_output(0, context.input(0));
  }
};

namespace {

constexpr auto joined_ops = standard_ops + ops<NotedSum, LateValue, DeadIfNegative>;

Operation note(const Output<float>& weight, const Output<float>& number, std::int64_t mark = 0,
               const std::string& name = {}) {
  return build<NotedSum>({weight, number}, {.mark = mark}, {.name = name});
}

struct NotedRun {
  std::vector<float> numbers;  ///< in ascending order
  std::vector<std::size_t> at_once;
};

/// One step of a session in the calling thread.
NotedRun run_noted(const Graph& graph, const std::vector<Feed>& feeds, const Operation& target, bool joins = true) {
  noted_numbers.clear();
  noted_at_once.clear();
  SessionOptions options;
  options.num_threads = 1;
  options.ops = joined_ops;
  options.inter_op = InterOp::sequential;
  options.passes.joint_kernels = joins;
  Session session(graph, options);
  session.run_erased({}, nullptr, feeds, {}, {&target, 1}, {});
  std::sort(noted_numbers.begin(), noted_numbers.end());
  std::sort(noted_at_once.begin(), noted_at_once.end());
  return {noted_numbers, noted_at_once};
}

using AtOnce = std::vector<std::size_t>;

}  // namespace

TEST_CASE("nodes that do not depend on one another run as one where there is a kernel for that", "[runtime][plan]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), w = placeholder<float>(graph, {});
  const auto all = group({note(w, x), note(w, x + 1.0f), note(w, x * 3.0f)});
  const std::vector<Feed> feeds{{x, Tensor<float>(2.0f)}, {w, Tensor<float>(10.0f)}};
  const NotedRun together = run_noted(graph, feeds, all), apart = run_noted(graph, feeds, all, false);
  CHECK(together.at_once == AtOnce{3});
  CHECK(apart.at_once == AtOnce{1, 1, 1});
  CHECK(together.numbers == std::vector<float>{20, 30, 60});
  CHECK(apart.numbers == together.numbers);
}

TEST_CASE("what keeps nodes from running as one", "[runtime][plan]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), w = placeholder<float>(graph, {}), u = placeholder<float>(graph, {});
  const std::vector<Feed> feeds{{x, Tensor<float>(2.0f)}, {w, Tensor<float>(1.0f)}, {u, Tensor<float>(1.0f)}};
  SECTION("another edge where they share one") {
    CHECK(run_noted(graph, feeds, group({note(w, x), note(u, x), note(w, x), note(u, x)})).at_once == AtOnce{2, 2});
  }
  SECTION("other attributes") {
    CHECK(run_noted(graph, feeds, group({note(w, x, 1), note(w, x, 2), note(w, x, 1)})).at_once == AtOnce{1, 2});
  }
  SECTION("one waits for the other") {
    const auto first = note(w, x);
    const auto after = graph.control_dependencies({first});
    CHECK(run_noted(graph, feeds, note(w, x)).at_once == AtOnce{1, 1});
  }
  SECTION("one waits for what waits for the other") {
    const auto first = note(w, x), beside = note(w, x);
    const auto after = graph.control_dependencies({first});
    const auto y = x * 2.0f;
    CHECK(run_noted(graph, feeds, group({note(w, y), beside})).at_once == AtOnce{1, 2});
  }
  SECTION("what they hold together") {
    std::vector<Operation> all;
    for (int i = 0; i < 7; ++i) all.push_back(note(w, x));
    CHECK(run_noted(graph, feeds, group(all)).at_once == AtOnce{1, 3, 3});
  }
  SECTION("that is not known") {
    const auto any = placeholder<float>(graph, PartialShape::unknown());
    std::vector<Feed> more = feeds;
    more.emplace_back(any, Tensor<float>(2.0f));
    CHECK(run_noted(graph, more, group({note(w, any), note(w, any)})).at_once == AtOnce{1, 1});
  }
  SECTION("one waits for something that comes later") {
    const auto late = Output<float>(build<LateValue>({x}));
    CHECK(run_noted(graph, feeds, group({note(w, x), note(w, late), note(w, late + 1.0f), note(w, x)})).at_once ==
          AtOnce{2, 2});
  }
}

TEST_CASE("of nodes that run as one those with dead inputs are passed over", "[runtime][plan]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), w = placeholder<float>(graph, {});
  const auto alive = Output<float>(build<DeadIfNegative>({x})), dead = Output<float>(build<DeadIfNegative>({-x}));
  const auto all = group({note(w, alive), note(w, dead), note(w, x)});
  for (const bool joins : {true, false}) {
    for (const float value : {2.0f, -3.0f}) {
      const NotedRun run = run_noted(graph, {{x, Tensor<float>(value)}, {w, Tensor<float>(10.0f)}}, all, joins);
      CHECK(run.at_once == (joins ? AtOnce{3} : AtOnce{1, 1}));
      const float other = value > 0 ? value : -value;
      CHECK(run.numbers == (value > 0 ? std::vector<float>{20, 20} : std::vector<float>{-30, other * 10}));
    }
  }
}

TEST_CASE("a plan of nodes that run as one has a node for all of them", "[runtime][plan]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), w = placeholder<float>(graph, {});
  const auto first = note(w, x, 0, "first"), second = note(w, x, 0, "second");
  const auto after = graph.control_dependencies({first, second});
  const auto y = x * 2.0f;
  dflow::testing::Planned planned(joined_ops, std::make_shared<InlinePool>());
  const auto plan = planned.plan(graph, {x, w}, {y}, false, InterOp::sequential);
  std::vector<std::string> names;
  for (const Plan::PlanNode& node : plan->nodes()) names.push_back(node.wiring.node->name);
  CHECK(names == std::vector<std::string>{"first + 1 more", "Const", y.operation().name()});
  const KernelContext::Wiring& joint = plan->nodes()[PlanNodeId(0)].wiring;
  CHECK(joint.num_inputs == 4);
  CHECK(joint.num_outputs == 0);
  CHECK(joint.node->where.line() == first.node().where.line());
}

namespace {

struct RandomJoins {
  StepGraph graph;
  IndexedVector<StepNodeId, detail::PlanJoins::Candidate> candidates;
  IndexedVector<StepNodeId, UnitId> unit_of;
};

/// A graph of sums and notes that wait for one another at random. Each of its units comes after the units before it.
RandomJoins random_joins(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Graph graph;
  std::vector<Output<float>> values{placeholder<float>(graph, {}), placeholder<float>(graph, {})};
  std::vector<Operation> operations;
  std::vector<NodeId> targets;
  const std::size_t num_nodes = 5 + below(60);
  for (std::size_t i = 0; i < num_nodes; ++i) {
    std::vector<Operation> controls;
    while (!operations.empty() && below(3) == 0) controls.push_back(operations[below(operations.size())]);
    const auto after = graph.control_dependencies(controls);
    const auto a = values[below(values.size())], b = values[below(values.size())];
    if (below(2) == 0) {
      values.push_back(a + b);
      operations.push_back(values.back().operation());
    } else {
      operations.push_back(note(values[below(2)], a));
    }
    targets.push_back(operations.back().node_id());
  }
  RandomJoins made;
  const std::vector<Endpoint> feeds{values[0].endpoint(), values[1].endpoint()};
  made.graph = prune(*graph.store(), feeds, {}, targets);
  made.candidates.resize(made.graph.nodes.size());
  made.unit_of.resize(made.graph.nodes.size());
  const std::size_t num_units = 1 + below(3);
  int unit = 0;
  for (const StepNodeId id : made.graph.nodes.indices()) {
    const StepNode& node = made.graph.node(id);
    if (node.is_fed_only) continue;
    if (below(20) == 0 && unit + 1 < static_cast<int>(num_units)) ++unit;
    made.unit_of[id] = UnitId(unit);
    if (node.op->name == "NotedSum" && below(8) != 0) {
      made.candidates[id] = {&Kernel<NotedSum, Cpu, float>::joint, below(2) == 0 ? 4 : 2};
    }
  }
  return made;
}

}  // namespace

TEST_CASE("of random graphs what runs as one depends on nothing of it, and each node comes after what it waits for",
          "[runtime][plan]") {
  std::size_t joined = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const RandomJoins of = random_joins(seed);
    const auto joins = detail::PlanJoins::find(of.graph, of.candidates, of.unit_of);
    if (joins.groups.empty()) continue;
    const auto stands_for = [&](StepNodeId id) {
      return joins.group_of[id] < 0 ? id : joins.groups[static_cast<std::size_t>(joins.group_of[id])].back();
    };
    IndexedVector<StepNodeId, std::int32_t> place(of.graph.nodes.size(), -1);
    for (std::size_t p = 0; p < joins.order.size(); ++p) {
      CHECK(place[joins.order[p]] == -1);
      place[joins.order[p]] = static_cast<std::int32_t>(p);
    }
    // All nodes before each one, itself included.
    IndexedVector<StepNodeId, std::set<StepNodeId>> before(of.graph.nodes.size());
    for (const StepNodeId id : of.graph.nodes.indices()) {
      before[id].insert(id);
      const auto add = [&](StepNodeId source) {
        before[id].insert(before[source].begin(), before[source].end());
        if (of.unit_of[source] == of.unit_of[id]) CHECK(place[stands_for(source)] < place[stands_for(id)]);
      };
      if (!of.unit_of[id].is_valid()) continue;
      CHECK(place[stands_for(id)] >= 0);
      for (const StepEndpoint input : of.graph.inputs_of(of.graph.node(id))) add(input.node);
      for (const StepNodeId control : of.graph.controls_of(of.graph.node(id))) add(control);
    }
    for (const std::vector<StepNodeId>& group : joins.groups) {
      CHECK(group.size() > 1);
      std::int64_t held = 0;
      for (const StepNodeId a : group) {
        CHECK(of.candidates[a].kernel != nullptr);
        CHECK(of.unit_of[a] == of.unit_of[group[0]]);
        CHECK(of.graph.inputs_of(of.graph.node(a))[0] == of.graph.inputs_of(of.graph.node(group[0]))[0]);
        held += of.candidates[a].held_bytes;
        for (const StepNodeId b : group) CHECK((a == b || before[a].count(b) == 0));
      }
      CHECK(held <= 12);
      joined += group.size();
    }
  }
  CHECK(joined > 1000);
}
