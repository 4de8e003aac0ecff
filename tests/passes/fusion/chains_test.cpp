#include <dflow/passes/fusion/chains.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/symbol.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>
#include <dflow/passes/optimize.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;

namespace {

/// A device that would run chains: it has rows of some elementwise ops, and no row is ever run.
KernelTables chaining_tables() {
  const auto none = [](const KernelInit&) -> std::unique_ptr<AnyKernel> { return nullptr; };
  std::vector<KernelEntry> rows{{.op = &op_def<ElementwiseChain>, .make = none}, {.op = &op_def<MatMul>, .make = none}};
  const auto add = [&]<class O>() {
    rows.push_back({.op = &op_def<O>, .make = none, .formula = [](int) { return formula_of<O>(); }});
  };
  add.operator()<Exp>();
  add.operator()<Tanh>();
  add.operator()<Neg>();
  add.operator()<Add>();
  add.operator()<Mul>();
  add.operator()<Div>();
  add.operator()<Less>();
  add.operator()<TanhGrad>();
  return KernelTables({KernelTable("GPU", std::move(rows))});
}

struct Wanted {
  std::vector<AnyOutput> feeds, fetches;
  std::vector<Operation> targets;
};

/// The step behind the pass. All nodes are on that device except the node that `elsewhere` names.
StepGraph chained(const Graph& graph, const Wanted& wanted, std::string_view elsewhere = {}) {
  std::vector<Endpoint> feeds, fetches;
  std::vector<NodeId> targets;
  for (const AnyOutput& edge : wanted.feeds) feeds.push_back(edge.endpoint());
  for (const AnyOutput& edge : wanted.fetches) fetches.push_back(edge.endpoint());
  for (const Operation& operation : wanted.targets) targets.push_back(operation.node_id());
  StepGraph step = prune(*graph.store(), feeds, fetches, targets);
  for (StepNode& node : step.nodes) node.placed_on = node->name == elsewhere ? 1 : 0;
  const std::vector<KernelTables> kernels{chaining_tables(), chaining_tables()};
  const Chains chains(kernels);
  PassOptions options;
  options.common_subexpressions = false;
  StepGraph made = optimize(std::move(step), options, {.chains = &chains});
  require_topological_order(made);
  return made;
}

/// Names of the nodes that do something, in the order of the step.
std::vector<std::string> names_of(const StepGraph& step) {
  std::vector<std::string> names;
  for (const StepNode& node : step.nodes) {
    if (node.op->role == OpRole::ordinary) names.push_back(node->name);
  }
  return names;
}

using Names = std::vector<std::string>;

struct Line {
  Graph graph;
  Output<float> x = placeholder<float>(graph, {2, 3}), w = placeholder<float>(graph, {3, 3});
};

}  // namespace

TEST_CASE("elementwise nodes of one shape that read one another become one", "[passes]") {
  Line line;
  const auto a = exp(line.x, {.name = "a"});
  const auto b = add(a, line.x, {.name = "b"});
  const auto c = tanh(b, {.name = "c"});
  const StepGraph step = chained(line.graph, {{line.x}, {c}, {}});
  CHECK(names_of(step) == Names{"a + b + c"});
  const StepNode& node = *std::find_if(step.nodes.begin(), step.nodes.end(),
                                       [](const StepNode& each) { return each.op == &op_def<ElementwiseChain>; });
  CHECK(node->where.line() == a.node().where.line());
  REQUIRE(node->outputs.size() == 1);
  CHECK(node->outputs[0].shape == PartialShape{2, 3});
  const auto& attrs = node->attrs_as<ElementwiseChain>();
  CHECK(attrs.ops == std::vector<std::string>{"Exp", "Add", "Tanh"});
  CHECK(attrs.reads == std::vector<std::int64_t>{1, 0, 2, 1, 0, 1, 2});
  CHECK(attrs.gives == std::vector<std::int64_t>{2});
  CHECK(attrs.Tin == std::vector<DType>{DType::float32});
}

TEST_CASE("what is read outside of a chain, or fetched, is an output of it", "[passes]") {
  Line line;
  const auto a = exp(line.x, {.name = "a"});
  const auto b = neg(a, {.name = "b"});
  const auto c = less(b, line.x, {.name = "c"});
  const auto product = matmul(a, line.w, {}, {.name = "product"});
  const StepGraph step = chained(line.graph, {{line.x, line.w}, {b, c, product}, {}});
  CHECK(names_of(step) == Names{"a + b + c", "product"});
  const StepNode& node = step.node(step.fetches[0].node);
  CHECK(node->outputs.size() == 3);
  CHECK(step.output(step.fetches[0]).dtype == DType::float32);
  CHECK(step.output(step.fetches[1]).dtype == DType::boolean);
  CHECK(step.fetches[0].node == step.fetches[1].node);
}

TEST_CASE("constants are copied to the chains that read them", "[passes]") {
  Line line;
  const auto two = constant(line.graph, 2.0f, {.name = "two"});
  const auto y = add(mul(line.x, two, {.name = "a"}), two, {.name = "b"});
  const StepGraph step = chained(line.graph, {{line.x}, {y}, {}});
  CHECK(names_of(step) == Names{"a + b"});
  CHECK(step.node(step.fetches[0].node).num_inputs == 2);
}

TEST_CASE("no chain waits for what waits for it", "[passes]") {
  Line line;
  const auto a = exp(line.x, {.name = "a"});
  const auto product = matmul(a, line.w, {}, {.name = "product"});
  const auto b = add(a, product, {.name = "b"});
  const auto c = tanh(b, {.name = "c"});
  CHECK(names_of(chained(line.graph, {{line.x, line.w}, {c}, {}})) == Names{"a", "product", "b + c"});
}

TEST_CASE("a node that could be made late goes with what reads it", "[passes]") {
  Line line;
  const auto early = exp(line.x, {.name = "early"});
  const auto product = matmul(line.x, line.w, {}, {.name = "product"});
  const auto late = add(early, product, {.name = "late"});
  CHECK(names_of(chained(line.graph, {{line.x, line.w}, {late}, {}})) == Names{"product", "early + late"});
}

TEST_CASE("other shapes and other devices are other chains", "[passes]") {
  Line line;
  const auto row = placeholder<float>(line.graph, {3});
  const auto small = tanh(exp(row, {.name = "r1"}), {.name = "r2"});
  const auto y = add(neg(line.x, {.name = "a"}), small, {.name = "b"});
  CHECK(names_of(chained(line.graph, {{line.x, row}, {y}, {}})) == Names{"r1 + r2", "a + b"});
  CHECK(names_of(chained(line.graph, {{line.x, row}, {y}, {}}, "b")).size() == 3);
}

TEST_CASE("what is fed, or is a target, stays a node of its own", "[passes]") {
  Line line;
  const auto a = exp(line.x, {.name = "a"});
  const auto b = neg(a, {.name = "b"});
  const auto c = tanh(b, {.name = "c"});
  const auto d = exp(c, {.name = "d"});
  CHECK(names_of(chained(line.graph, {{line.x}, {d}, {b.operation()}})) == Names{"a", "b", "c + d"});
  const StepGraph fed = chained(line.graph, {{b}, {d, b}, {}});
  CHECK(fed.fetches[1] == fed.feeds[0]);
}

TEST_CASE("control edges go to the chain, from it, and between nodes that are then in none together", "[passes]") {
  Line line;
  const auto before = matmul(line.x, line.w, {}, {.name = "before"});
  Output<float> a, b;
  {
    const auto waits = line.graph.control_dependencies({before.operation()});
    a = exp(line.x, {.name = "a"});
  }
  b = neg(a, {.name = "b"});
  Output<float> after;
  {
    const auto waits = line.graph.control_dependencies({a.operation()});
    after = matmul(line.w, line.w, {}, {.name = "after"});
  }
  const StepGraph step = chained(line.graph, {{line.x, line.w}, {b, after}, {before.operation()}});
  const Names names = names_of(step);
  CHECK(std::find(names.begin(), names.end(), "a + b") != names.end());
  const StepNode& chain = step.node(step.fetches[0].node);
  REQUIRE(chain.num_controls == 1);
  CHECK(step.node(step.controls_of(chain)[0])->name == "before");
  REQUIRE(step.node(step.fetches[1].node).num_controls == 1);
  CHECK(step.controls_of(step.node(step.fetches[1].node))[0] == step.fetches[0].node);
}

TEST_CASE("long chains are cut where a kernel has no room for more", "[passes]") {
  Graph graph;
  std::vector<AnyOutput> feeds;
  Output<float> sum = placeholder<float>(graph, {4});
  feeds.push_back(sum);
  for (int i = 0; i < 100; ++i) {
    const auto next = placeholder<float>(graph, {4});
    feeds.push_back(next);
    sum = sum + next;
  }
  const StepGraph wide = chained(graph, {feeds, {sum}, {}});
  for (const StepNode& node : wide.nodes) CHECK(node.num_inputs <= static_cast<std::uint32_t>(max_chain_inputs));
  CHECK(names_of(wide).size() == 7);

  Graph other;
  const auto x = placeholder<float>(other, {4});
  std::vector<AnyOutput> fetches;
  Output<float> power = x;
  for (int i = 0; i < 200; ++i) {
    power = power * x;
    if (i % 10 == 0) fetches.push_back(power);
  }
  fetches.push_back(power);
  const StepGraph deep = chained(other, {{x}, fetches, {}});
  for (const StepNode& node : deep.nodes) CHECK(node->outputs.size() <= static_cast<std::size_t>(max_chain_outputs));
  const Names names = names_of(deep);
  CHECK(names.size() == 4);
  for (const std::string& name : names) CHECK(name.size() < 80);
}

TEST_CASE("where tensors may be dead a chain has one result, which needs all its inputs", "[passes]") {
  Line line;
  const auto side = placeholder<bool>(line.graph, {});
  const auto [no, yes] = frames::switch_on(line.x, side);
  const auto a = exp(line.x, {.name = "a"});
  const auto b = add(a, yes, {.name = "b"});  // dead where a is not
  const auto c = tanh(b, {.name = "c"});
  const StepGraph step = chained(line.graph, {{line.x, side}, {a, c}, {}});
  const Names names = names_of(step);
  CHECK(std::find(names.begin(), names.end(), "a") != names.end());
  CHECK(std::find(names.begin(), names.end(), "b + c") != names.end());
}

TEST_CASE("the name of a chain is one of a node of a step", "[passes]") {
  for (const int length : {2, 4, 5, 6, 64}) {
    Graph graph;
    Output<float> x = placeholder<float>(graph, {4}), y = x;
    for (int i = 0; i < length; ++i) y = exp(y, {.name = str_cat("node_", i)});
    const Names names = names_of(chained(graph, {{x}, {y}, {}}));
    REQUIRE(names.size() == 1);
    check_step_node_name(names[0], {}, std::source_location::current());
    if (length == 6) CHECK(names[0] == "node_0 + node_1 + node_2 + 2_more + node_5");
  }
}

TEST_CASE("members wait for the same feeds where these come apart", "[passes]") {
  for (const int num_feeds : {2, 20}) {
    Graph graph;
    std::vector<Endpoint> feeds, fetches;
    std::vector<Output<float>> sums;
    for (int i = 0; i < num_feeds; ++i) {
      const auto x = placeholder<float>(graph, {4});
      feeds.push_back(AnyOutput(x).endpoint());
      const auto here = neg(exp(x, {.name = str_cat("e", i)}), {.name = str_cat("n", i)});
      sums.push_back(i == 0 ? here : add(sums.back(), here, {.name = str_cat("s", i)}));
      fetches.push_back(AnyOutput(sums.back()).endpoint());
    }
    for (const bool feeds_come_apart : {false, true}) {
      StepGraph step = prune(*graph.store(), feeds, fetches, {});
      for (StepNode& node : step.nodes) node.placed_on = 0;
      const std::vector<KernelTables> kernels{chaining_tables()};
      const Chains chains(kernels);
      CHECK(chain(step, chains, feeds_come_apart));
      const Names names = names_of(step);
      if (!feeds_come_apart) {
        CHECK(names.size() == (num_feeds == 2 ? 1u : 3u));
        continue;
      }
      // Each feed's own two nodes, and each sum by itself.
      CHECK(names.size() == static_cast<std::size_t>(2 * num_feeds - 1));
      for (int i = 0; i < num_feeds; ++i) {
        CHECK(std::find(names.begin(), names.end(), str_cat("e", i, " + n", i)) != names.end());
      }
    }
  }
}

TEST_CASE("elements that are checked, and complex ones, are in no chain", "[passes]") {
  Graph graph;
  const auto i = placeholder<int>(graph, {3});
  const auto z = placeholder<std::complex<float>>(graph, {3});
  CHECK(names_of(chained(graph, {{i}, {neg(div(i, i, {.name = "quotient"}), {.name = "n"})}, {}})).size() == 2);
  CHECK(names_of(chained(graph, {{z}, {neg(exp(z))}, {}})).size() == 2);
}

TEST_CASE("the pass is switched off by its option", "[passes]") {
  Line line;
  const auto y = tanh(exp(line.x));
  const std::vector<KernelTables> kernels{chaining_tables()};
  const Chains chains(kernels);
  CHECK(!chains.empty());
  CHECK(Chains(std::vector<KernelTables>{KernelTables()}).empty());
  PassOptions options;
  options.chains = false;
  StepGraph step = prune(*line.graph.store(), std::vector{line.x.endpoint()}, std::vector{y.endpoint()}, {});
  for (StepNode& node : step.nodes) node.placed_on = 0;
  CHECK(names_of(optimize(step, options, {.chains = &chains})).size() == 2);
  options.chains = true;
  CHECK(names_of(optimize(step, options, {.chains = &chains})).size() == 1);
}
