// How gradients are added up, and which nodes run before the gradients are used.
#include <dflow/autodiff/gradients.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

using namespace dflow;
using dflow::train::GateGradients;

namespace {

constexpr GradientOptions all_at_once{}, one_by_one{.aggregation = GradientAggregation::accumulate},
    gated{.gate_gradients = true}, both_options{.aggregation = GradientAggregation::accumulate, .gate_gradients = true};

AnyOutput gradient_with(const AnyOutput& y, const AnyOutput& x, const GradientOptions& options) {
  return densify(gradients({&y, 1}, {&x, 1}, options)[0], x);
}

std::vector<NodeId> nodes_of(const Graph& graph, std::string_view op) {
  std::vector<NodeId> found;
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(static_cast<std::uint32_t>(i));
    if (graph.node(id).op->name == op) found.push_back(id);
  }
  return found;
}

/// Reads x in five ways, once by rows.
Output<double> five_uses(const Output<double>& x, const Output<std::int64_t>& rows) {
  const auto some = gather(x, rows);
  return reduce_sum(sin(x)) + reduce_sum(square(x)) + reduce_sum(some * some * some) + reduce_sum(exp(x)) +
         reduce_sum(x * 3.0);
}

/// The times of the nodes that `accepts` takes: when the first began, and the last ended.
struct TracedTimes {
  std::int64_t first_start = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_end = 0;
  int count = 0;
};
template <class Accepts>
TracedTimes times_of(const RunMetadata& metadata, const Accepts& accepts) {
  TracedTimes times;
  for (const NodeStats& node : metadata.stats.nodes) {
    if (!accepts(node)) continue;
    ++times.count;
    times.first_start = std::min(times.first_start, node.start_ns);
    times.last_end = std::max(times.last_end, node.end_ns);
  }
  return times;
}

}  // namespace

TEST_CASE("gradients that are added one by one are those added at once, and take two at a time", "[gradients]") {
  const Tensor<double> value({3, 2}, {0.5, -1, 2, 0.25, -0.75, 1.5});
  std::vector<Tensor<double>> results;
  for (const GradientOptions& options : {all_at_once, one_by_one, gated, both_options}) {
    Graph graph;
    const auto x = placeholder<double>(graph, {3, 2});
    const auto y = five_uses(x, constant(graph, Tensor<std::int64_t>({2}, {1, 1})));
    const auto dx = gradient_with(y, x, options).as<double>();
    std::size_t most = 0;
    for (const NodeId id : nodes_of(graph, "AddN")) most = std::max(most, graph.node(id).inputs.size());
    CHECK(most == (options.aggregation == GradientAggregation::add_n ? 5u : 2u));
    const auto second = gradient_with(reduce_sum(dx * dx), x, options).as<double>();
    Session session(graph, {.num_threads = 2});
    const auto [first, of_first] = session.run({{x, value}}, dx, second);
    results.push_back(first);
    results.push_back(of_first);
  }
  for (std::size_t i = 2; i < results.size(); ++i) {
    for (std::int64_t at = 0; at < 6; ++at) {
      CHECK(results[i].data()[at] == Approx(results[i % 2].data()[at]).epsilon(1e-14));
    }
  }
  for (std::int64_t at = 0; at < 6; ++at) {
    const double v = value.data()[at];
    const double rows = at == 2 || at == 3 ? 2 * 3 * v * v : 0;
    CHECK(results[0].data()[at] == Approx(std::cos(v) + 2 * v + rows + std::exp(v) + 3));
  }
}

TEST_CASE("rows that are added to rows stay rows, however gradients are added up", "[gradients]") {
  for (const GradientOptions& options : {all_at_once, one_by_one, gated, both_options}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {4, 2});
    const auto a = gather(x, constant(graph, Tensor<std::int64_t>({2}, {0, 3})));
    const auto b = gather(x, constant(graph, Tensor<std::int32_t>({3}, {3, 3, 1})));
    const AnyOutput y = reduce_sum(a) + reduce_sum(b * 2.0f), of = x;
    const Gradient gradient = gradients({&y, 1}, {&of, 1}, options)[0];
    REQUIRE(gradient.slices);
    const auto dense = densify(gradient, x).as<float>();
    Session session(graph);
    CHECK(bitwise_equal(session.run({{x, Tensor<float>::full({4, 2}, 1.0f)}}, dense),
                        Tensor<float>({4, 2}, {1, 1, 2, 2, 0, 0, 5, 5})));
  }
}

TEST_CASE("with gates, all gradients of an op are computed before any of them is used", "[gradients]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {64, 256}), b = placeholder<float>(graph, {256, 8});
  const AnyOutput y = reduce_sum(square(matmul(a, b))), xs[] = {a, b};
  const std::vector<Gradient> all = gradients({&y, 1}, xs, gated);
  const auto use_a = reduce_sum(all[0].dense.as<float>(), {}, {}, {.name = "use_a"});
  const auto use_b = reduce_sum(all[1].dense.as<float>(), {}, {}, {.name = "use_b"});
  Session session(graph, {.num_threads = 3});
  for (int run = 0; run < 20; ++run) {
    RunMetadata metadata;
    session.run({.trace = true}, &metadata,
                {{a, Tensor<float>::full({64, 256}, 1)}, {b, Tensor<float>::full({256, 8}, 1)}}, use_a, use_b);
    const auto made = times_of(metadata, [](const NodeStats& node) {
      return node.op == "MatMul" && std::string_view(node.node).starts_with("gradients");
    });
    const auto used =
        times_of(metadata, [](const NodeStats& node) { return std::string_view(node.node).starts_with("use_"); });
    CHECK(made.count == 2);
    CHECK(used.count == 2);
    CHECK(made.last_end <= used.first_start);
  }
}

TEST_CASE("gates and sums one by one reach into bodies, and give the same", "[gradients]") {
  std::vector<Tensor<double>> results;
  for (const GradientOptions& options : {all_at_once, one_by_one, gated, both_options}) {
    for (const bool is_lowered : {false, true}) {
      Graph graph;
      const auto x = placeholder<double>(graph, {2, 2}), w = placeholder<double>(graph, {2, 2});
      const auto looped = std::get<1>(while_loop(
          [&](auto i, auto) { return i < 3; },
          [&](auto i, auto v) {
            const auto next = cond(
                reduce_sum(v) > 0.5, [&] { return matmul(v, w) * 0.5 + sin(v) * w; }, [&] { return v * w + x; });
            return std::tuple{i + 1, next};
          },
          std::tuple{constant(graph, 0), x}));
      const AnyOutput y = reduce_sum(looped * looped), xs[] = {x, w};
      const std::vector<Gradient> all = gradients({&y, 1}, xs, options);
      const auto dx = densify(all[0], x).as<double>(), dw = densify(all[1], w).as<double>();
      const auto ddw = gradient_with(reduce_sum(dw * dx), w, options).as<double>();
      Session session(graph, {.num_threads = 2, .passes = {.lower_control_flow = is_lowered}});
      const auto [gx, gw, gww] = session.run(
          {{x, Tensor<double>({2, 2}, {0.5, -0.25, 1, 0.75})}, {w, Tensor<double>({2, 2}, {1, -0.5, 0.25, 1.5})}}, dx,
          dw, ddw);
      for (const auto& each : {gx, gw, gww}) results.push_back(each);
    }
  }
  for (std::size_t i = 3; i < results.size(); ++i) {
    for (std::int64_t at = 0; at < 4; ++at) {
      CHECK(results[i].data()[at] == Approx(results[i % 3].data()[at]).epsilon(1e-12));
    }
  }
}

TEST_CASE("a gate holds what exists, on whatever device it is", "[gradients]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  AnyOutput first, second;
  {
    const auto on = graph.device("/cpu:1");
    first = x + 1.0f;
  }
  {
    const auto on = graph.device("/cpu:2");
    second = x * 2.0f;
  }
  const auto rows = constant(graph, Tensor<std::int64_t>({2}, {1, 0}));
  const std::vector<Gradient> given{
      {first, std::nullopt},
      {},
      {AnyOutput(), IndexedSlices{second, rows, constant(graph, Tensor<std::int64_t>({1}, {2}))}}};
  const std::vector<Gradient> held = gate(given);
  REQUIRE(held.size() == 3);
  CHECK_FALSE(held[1].exists());
  REQUIRE(held[2].slices);
  CHECK(held[2].slices->indices == AnyOutput(rows));
  Session session(graph, {.num_cpu_devices = 3});
  const auto [a, b] =
      session.run({{x, Tensor<float>({2}, {1, 2})}}, held[0].dense.as<float>(), held[2].slices->values.as<float>());
  CHECK(bitwise_equal(a, Tensor<float>({2}, {2, 3})));
  CHECK(bitwise_equal(b, Tensor<float>({2}, {2, 4})));
  // One gradient alone, or none, stays as it was.
  CHECK(gate({}).empty());
  const std::size_t before = graph.num_nodes();
  CHECK(gate(std::span(given).first(2))[0].dense == first);
  CHECK(graph.num_nodes() == before);
  Graph other;
  const std::vector<Gradient> mixed{{first, std::nullopt}, {constant(other, 1.0f), std::nullopt}};
  CHECK(code_of([&] { return gate(mixed); }) == Code::invalid_argument);
}

TEST_CASE("an optimizer that gates the graph updates nothing before all gradients are there", "[gradients]") {
  std::vector<Tensor<float>> weights;
  for (const GateGradients gates : {GateGradients::none, GateGradients::op, GateGradients::graph}) {
    for (const GradientAggregation aggregation : {GradientAggregation::add_n, GradientAggregation::accumulate}) {
      Graph graph{{.seed = 1}};
      const auto x = placeholder<float>(graph, {32, 64});
      std::vector<Variable<float>> layers;
      Output<float> h = x;
      for (int i = 0; i < 4; ++i) {
        layers.emplace_back(graph, Tensor<float>::full({64, 64}, 0.01f * static_cast<float>(i + 1)),
                            VariableOptions{.name = str_cat("w", i)});
        h = tanh(matmul(h, layers.back()) * 0.1f) + h * h;
      }
      const Variable<float> table(graph, Tensor<float>::full({5, 64}, 0.0f), {.name = "table"});
      const auto rows = gather(Output<float>(table), constant(graph, Tensor<std::int64_t>({2}, {1, 3})));
      const auto loss = reduce_mean(square(h)) + reduce_mean(square(rows - 1.0f));
      const auto train = train::Adam(0.01f).minimize(loss, {.aggregation = aggregation, .gate_gradients = gates});
      Session session(graph, {.num_threads = 3});
      session.run(initialize_variables(graph));
      for (int step = 0; step < 5; ++step) {
        RunMetadata metadata;
        session.run({.trace = true}, &metadata, {{x, Tensor<float>::full({32, 64}, 0.1f)}}, train);
        const auto updates = times_of(metadata, [](const NodeStats& node) {
          return node.op.find("Adam") != std::string::npos && node.op.find("Apply") != std::string::npos;
        });
        const auto made = times_of(metadata, [](const NodeStats& node) {
          return std::string_view(node.node).starts_with("gradients") && node.op == "MatMul";
        });
        CHECK(updates.count >= 4);
        CHECK(made.count == 7);
        if (gates == GateGradients::graph) CHECK(made.last_end <= updates.first_start);
      }
      weights.push_back(session.run(layers[0]));
      weights.push_back(session.run(table));
    }
  }
  for (std::size_t i = 2; i < weights.size(); ++i) {
    for (std::int64_t at = 0; at < weights[i].num_elements(); ++at) {
      REQUIRE(weights[i].data()[at] == Approx(weights[i % 2].data()[at]).margin(1e-5));
    }
  }
}

TEST_CASE("optimizers around others, and sums over batches, pass gates and aggregation on", "[gradients]") {
  std::vector<Tensor<float>> weights;
  std::vector<std::size_t> gates_built;
  for (const GateGradients gates : {GateGradients::none, GateGradients::op, GateGradients::graph}) {
    for (const bool is_summed : {false, true}) {
      Graph graph;
      const auto x = placeholder<float>(graph, {4, 3});
      const Variable<float> w(graph, Tensor<float>::full({3, 3}, 0.5f)), b(graph, Tensor<float>::full({3}, 0.25f));
      const auto loss = reduce_mean(square(bias_add(matmul(x, w), b)));
      const train::LossScaleOptimizer optimizer(train::GradientDescent(0.1f), train::LossScale::fixed(8));
      const train::MinimizeOptions options{.aggregation = GradientAggregation::accumulate, .gate_gradients = gates};
      Session session(graph);
      const auto run = [&](const Operation& train) { session.run({{x, Tensor<float>::full({4, 3}, 1.5f)}}, train); };
      if (is_summed) {
        const train::AccumulatedGradients sums(optimizer, loss, options);
        session.run(initialize_variables(graph));
        run(sums.add());
        session.run(sums.update());
      } else {
        const Operation train = optimizer.minimize(loss, options);
        session.run(initialize_variables(graph));
        run(train);
      }
      std::size_t num_gates = 0;
      for (const NodeId id : nodes_of(graph, "NoOp")) {
        num_gates += graph.node(id).name.find("gate") != std::string::npos ? 1 : 0;
      }
      gates_built.push_back(num_gates);
      weights.push_back(session.run(w));
    }
  }
  for (const Tensor<float>& each : weights) CHECK(bitwise_equal(each, weights[0]));
  CHECK(weights[0](0, 0) < 0.5f);
  CHECK(gates_built[0] == 0);
  CHECK(gates_built[1] == 0);
  for (std::size_t i = 2; i < 6; ++i) CHECK(gates_built[i] > 0);
}
