#include <dflow/passes/optimize.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"

#include <cstdint>
#include <set>
#include <vector>

using namespace dflow;

namespace {

StepGraph step_graph(const Graph& graph, const AnyOutput& fetch) {
  const Endpoint fetches[] = {fetch.endpoint()};
  return prune(*graph.store(), {}, fetches, {});
}

std::size_t count(const StepGraph& graph, std::string_view op) {
  std::size_t n = 0;
  for (const StepNode& node : graph.nodes) n += node.op->name == op ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("prune keeps what the fetch needs and stops at feeds") {
  Graph graph;
  auto a = constant(graph, 1.0f), b = constant(graph, 2.0f);
  auto c = a + b;
  auto d = c * b;
  static_cast<void>(d * d);
  CHECK(step_graph(graph, d).nodes.size() == 4);
  const Endpoint feeds[] = {c.endpoint()}, fetches[] = {d.endpoint()};
  const StepGraph fed = prune(*graph.store(), feeds, fetches, {});
  CHECK(fed.nodes.size() == 3);
  CHECK(count(fed, "Const") == 1);
}

TEST_CASE("a step runs what a constant was built after, whether or not constants are folded") {
  Graph graph;
  const Variable<float> v(graph, 0.0f, {.name = "v"});
  Output<float> late;
  {
    const auto after = graph.control_dependencies({v.assign(constant(graph, 7.0f))});
    late = constant(graph, 1.0f);
  }
  const Output<float> once = -late, twice = -(once + late);
  for (const bool folds : {false, true}) {
    for (const auto& fetch : {late, once, twice}) {
      SessionOptions options{.num_threads = 1};
      options.passes.constant_folding = folds;
      Session session(graph, options);
      session.run(v.initializer());
      session.run(fetch);
      CHECK(session.run(v).scalar() == 7.0f);
    }
  }
}

TEST_CASE("nodes on constants are folded, stateful ones stay") {
  Graph graph;
  auto a = constant(graph, 1.0f), b = constant(graph, 2.0f);
  auto y = (a + b) * random_uniform<float>(graph, {2});
  const CpuDevice device({.pool = std::make_shared<InlinePool>()});
  const OpSet ops = standard_ops;
  const StepGraph folded = optimize(step_graph(graph, y), {}, {.host = &device.context(), .kernels = &ops.kernels()});
  CHECK(count(folded, "Add") == 0);
  CHECK(count(folded, "RandomUniform") == 1);
  CHECK(count(folded, "Mul") == 1);
}

TEST_CASE("of a chain that is folded its last value is kept, and two at a time are there") {
  Graph graph;
  const std::size_t size = std::size_t{1} << 20;
  Output<float> last = constant(graph, Tensor<float>::full({static_cast<std::int64_t>(size / sizeof(float))}, 1.0f));
  for (int i = 0; i < 20; ++i) last = last + last;
  const auto x = placeholder<float>(graph, {1});
  const auto y = reduce_sum(last * x);
  const CpuDevice device({.pool = std::make_shared<InlinePool>()});
  const OpSet ops = standard_ops;
  const StepGraph folded = optimize(step_graph(graph, y), {}, {.host = &device.context(), .kernels = &ops.kernels()});
  CHECK(count(folded, "Add") == 0);
  std::size_t made = 0;
  for (const auto& list : folded.made) made += list->size();
  CHECK(made == 1);
  SessionOptions options{.num_threads = 1, .memory_limit_bytes = 5 * size};
  Session session(graph, options);
  CHECK(session.run({{x, Tensor<float>({1}, {1})}}, y).scalar() == 262144.0f * 1048576.0f);
}

TEST_CASE("who reads a constant that is built after another node is not folded") {
  Graph graph;
  const auto drawn = random_uniform<float>(graph, {2});
  Output<float> late;
  {
    const auto after = graph.control_dependencies({drawn.operation()});
    late = constant(graph, 1.0f);
  }
  const auto y = tanh(late) + tanh(constant(graph, 2.0f));
  const CpuDevice device({.pool = std::make_shared<InlinePool>()});
  const OpSet ops = standard_ops;
  const StepGraph folded = optimize(step_graph(graph, y), {}, {.host = &device.context(), .kernels = &ops.kernels()});
  CHECK(count(folded, "Tanh") == 1);
  CHECK(count(folded, "RandomUniform") == 1);
}

TEST_CASE("equal nodes are merged, random ones are not") {
  Graph graph;
  auto x = placeholder<float>(graph, {2});
  auto y = tanh(x) + tanh(x);
  const StepGraph merged = merge_common_subexpressions(step_graph(graph, y));
  CHECK(count(prune(merged), "Tanh") == 1);
  auto r = random_uniform<float>(graph, {2}) + random_uniform<float>(graph, {2});
  CHECK(count(prune(merge_common_subexpressions(step_graph(graph, r))), "RandomUniform") == 2);
  auto m = matmul(reshape(x, {1, 2}), reshape(x, {1, 2}), {.transpose_b = true});
  auto n = matmul(reshape(x, {1, 2}), reshape(x, {1, 2}), {.transpose_a = true});
  auto both = reduce_sum(m) + reduce_sum(n);
  CHECK(count(prune(merge_common_subexpressions(step_graph(graph, both))), "MatMul") == 2);
}

TEST_CASE("nodes that wait for others, or are elsewhere, stay apart and do not share a place in the table") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  std::vector<AnyOutput> negated;
  for (int i = 0; i < 100; ++i) {
    const auto scope = graph.control_dependencies({no_op(graph)});
    negated.push_back(-x);
  }
  std::vector<Operation> targets;
  for (const AnyOutput& edge : negated) targets.push_back(edge.operation());
  StepGraph step = step_graph(graph, with_dependencies({group(targets)}, x));
  std::set<std::uint64_t> hashes;
  for (const StepNode& node : step.nodes) hashes.insert(detail::node_hash(step, node));
  CHECK(hashes.size() >= 100);  // no two negations share one
  StepNode here = step.nodes.front(), there = here;
  here.placed_on = 0;
  there.placed_on = 1;
  CHECK(detail::node_hash(step, here) != detail::node_hash(step, there));
  CHECK(count(prune(merge_common_subexpressions(std::move(step))), "Neg") == 100);
}
