// Functions with bodies that stand in the place of their calls.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using InlinedScalar = df::Output<double>;

/// The number of nodes with op `op` that run in a step and in its bodies.
template <class Fetch>
int num_run_of(df::Session& session, std::initializer_list<df::Feed> feeds, const Fetch& fetch, std::string_view op) {
  df::RunMetadata metadata;
  static_cast<void>(session.run({.trace = true}, &metadata, feeds, fetch));
  const auto& nodes = metadata.stats.nodes;
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.op == op; }));
}

/// The value of a program at x = 1.5, and its first two derivatives.
template <class Program>
std::vector<df::AnyTensor> run_with(const Program& program, bool is_inlined, const df::PassOptions& passes) {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {});
  const InlinedScalar y = program(graph, x, df::FunctionOptions{.is_inlined = is_inlined});
  const auto dy = df::gradients(y, x), ddy = df::gradients(dy, x);
  df::Session session(graph, {.passes = passes});
  std::vector<df::AnyTensor> all;
  for (int run = 0; run < 2; ++run) {
    const auto [a, b, c] = session.run({{x, df::Tensor<double>(1.5)}}, y, dy, ddy);
    all.insert(all.end(), {a, b, c});
  }
  return all;
}

InlinedScalar twice_called(df::Graph& graph, const InlinedScalar& x, const df::FunctionOptions& options) {
  const auto outside = x * 2.0;
  const auto f = df::function(
      graph, "f", [&](InlinedScalar a, InlinedScalar b) { return df::sin(a * b) + outside; }, options);
  return f(f(x, outside), x) * f(x, x);
}

InlinedScalar nested_calls(df::Graph& graph, const InlinedScalar& x, const df::FunctionOptions& options) {
  const auto inner = df::function(
      graph, "inner", [&](InlinedScalar a) { return df::exp(a) * x; }, options);
  const auto called = df::function(graph, "called", [&](InlinedScalar a) { return inner(a) - a; });
  const auto outer = df::function(
      graph, "outer",
      [&](InlinedScalar a) {
        return std::tuple{inner(a * 0.5), called(a), a};
      },
      options);
  const auto [a, b, c] = outer(df::sin(x));
  return a * b + c;
}

InlinedScalar around_control_flow(df::Graph& graph, const InlinedScalar& x, const df::FunctionOptions& options) {
  const auto square = df::function(
      graph, "square", [](InlinedScalar a) { return a * a; }, options);
  const auto f = df::function(
      graph, "f",
      [&](InlinedScalar a) {
        const auto [i, last] = df::while_loop([&](auto i, auto) { return i < 3; },
                                              [&](auto i, auto v) {
                                                return std::tuple{i + 1, square(v) * 0.5 + a};
                                              },
                                              std::tuple{df::constant(graph, 0), a * 0.25});
        return df::cond(
            last > 1.0, [&] { return square(last); }, [&] { return last + a; });
      },
      options);
  return f(x) + f(x * 0.125);
}

InlinedScalar in_map(df::Graph& graph, const InlinedScalar& x, const df::FunctionOptions& options) {
  const auto f = df::function(
      graph, "f", [&](InlinedScalar a) { return df::tanh(a) * x; }, options);
  return df::reduce_sum(df::map([&](auto row) { return f(row); }, df::pack({x, x * 2.0, x * x})));
}

}  // namespace

TEST_CASE("inlined functions give what called ones do, with two derivatives, in every form") {
  const auto program = GENERATE(twice_called, nested_calls, around_control_flow, in_map);
  const df::PassOptions passes = df::testing::each_form();
  const auto called = run_with(program, false, {}), inlined = run_with(program, true, passes);
  for (std::size_t i = 0; i < called.size(); ++i) {
    CHECK(inlined[i].as<double>().scalar() == Approx(called[i].as<double>().scalar()).epsilon(1e-13));
  }
}

TEST_CASE("an inlined function leaves no call in a step, and a called one does") {
  for (const bool is_inlined : {false, true}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, {});
    const auto y = nested_calls(graph, x, {.is_inlined = is_inlined});
    df::Session session(graph);
    const df::Tensor<double> at(1.0);
    // "outer" once, "inner" twice in it, once of them in "called", which is not inlined.
    CHECK(num_run_of(session, {{x, at}}, y, "Call") == (is_inlined ? 1 : 4));
    CHECK(num_run_of(session, {{x, at}}, y, "Exp") == 2);
  }
}

TEST_CASE("one call of a function is inlined where its others are not, with its gradient") {
  for (const bool is_inlined : {false, true}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, {});
    const auto f = df::function(graph, "f", [](InlinedScalar a, InlinedScalar b) { return df::exp(a * b); });
    const auto y = is_inlined ? df::inlined(f)(x, x) : f(x, x);
    const auto z = f(x, x + 1.0);
    const auto dy = df::gradients(y, x), ddy = df::gradients(dy, x);
    // Also in a graph that was read.
    const df::Graph again = df::import_graph(df::to_graph_def(graph), df::standard_op_table());
    CHECK(df::to_graph_def(again).nodes.size() == df::to_graph_def(graph).nodes.size());
    df::Session session(graph);
    const df::Tensor<double> at(0.5);
    CHECK(num_run_of(session, {{x, at}}, y, "Call") == (is_inlined ? 0 : 1));
    CHECK(num_run_of(session, {{x, at}}, z, "Call") == 1);
    CHECK((num_run_of(session, {{x, at}}, ddy, "Call") == 0) == is_inlined);
    const double value = std::exp(0.25);
    CHECK(session.run({{x, at}}, y).scalar() == Approx(value).epsilon(1e-14));
    CHECK(session.run({{x, at}}, dy).scalar() == Approx(value).epsilon(1e-14));       // 2 x f
    CHECK(session.run({{x, at}}, ddy).scalar() == Approx(3 * value).epsilon(1e-14));  // (2 + 4 x^2) f
  }
}

TEST_CASE("a function that calls itself is called, whoever asks to inline it") {
  df::Graph graph;
  using Factorial = InlinedScalar(InlinedScalar);
  const auto x = df::placeholder<double>(graph, {});
  const auto factorial = df::recursive_function<Factorial>(graph, "factorial",
                                                           [](const auto& self, InlinedScalar n) {
                                                             return df::cond(
                                                                 n < 1.5, [&] { return n; },
                                                                 [&] { return n * df::inlined(self)(n - 1.0); });
                                                           },
                                                           {.shapes = {df::Shape{}}, .result_shapes = {df::Shape{}}});
  const auto y = df::inlined(factorial)(x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{x, df::Tensor<double>(6.0)}}, y).scalar() == 720);
}

TEST_CASE("an inlined body runs once for each call, after what its call waits for and before what waits for it") {
  for (const bool is_inlined : {false, true}) {
    df::Graph graph;
    const df::Variable<std::int32_t> count(graph, df::constant(graph, 0));
    const auto step = df::function(graph, "step", [&] { return count.assign_add(1); }, {.is_inlined = is_inlined});
    const auto reset = count.assign(df::constant(graph, 40));
    const auto first = [&] {
      const auto after = graph.control_dependencies({reset});
      return step();
    }();
    const auto second = [&] {
      const auto after = graph.control_dependencies({first});
      return step();
    }();
    df::Session session(graph, {.num_threads = 3});
    session.run(df::initialize_variables(graph));
    for (int run = 0; run < 20; ++run) {
      INFO("inlined: " << is_inlined);
      session.run(second);
      CHECK(session.run(count).scalar() == 42);
    }
  }
}

TEST_CASE("calls whose inlining would make more nodes than anybody has built stay calls") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {});
  auto f = df::function(graph, "f", [](InlinedScalar a) { return a * 1.0 + 1.0; }, {.is_inlined = true});
  constexpr int depth = 18;
  for (int level = 0; level < depth; ++level) {
    f = df::function(graph, "f", [&](InlinedScalar a) { return f(f(a)); }, {.is_inlined = true});
  }
  const auto y = f(x);
  df::Session session(graph, {.num_threads = 1});
  CHECK(session.run({{x, df::Tensor<double>(0.0)}}, y).scalar() == double{1 << depth});
}

TEST_CASE("errors in an inlined body name its node and line") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, df::PartialShape::unknown());
  const auto f = df::function(graph, "f", [](df::Output<float> a) { return df::matmul(a, a, {}, {.name = "product"}); },
                              {.is_inlined = true});
  const auto y = f(x);
  df::Session session(graph);
  try {
    static_cast<void>(session.run({{x, df::Tensor<float>({2, 3})}}, y));
    FAIL("ran");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::invalid_argument);
    CHECK(std::string(error.what()).find("f/product") != std::string::npos);
    CHECK(std::string(error.what()).find("inlined_functions_test.cpp") != std::string::npos);
  }
}

TEST_CASE("shapes that were declared of an inlined function's arguments are checked in the step") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, df::PartialShape::unknown());
  const auto f = df::function(graph, "f", [](df::Output<float> a) { return a + 1.0f; },
                              {.shapes = {{2, df::dynamic}}, .is_inlined = true});
  const auto y = f(x);
  df::Session session(graph);
  CHECK(session.run({{x, df::Tensor<float>::full({2, 3}, 1.0f)}}, y).shape() == df::Shape{2, 3});
  CHECK_THROWS_AS(session.run({{x, df::Tensor<float>::full({3, 3}, 1.0f)}}, y), df::Error);
}

TEST_CASE("a registered function is inlined wherever it is found, also in a graph that was read") {
  df::Graph graph;
  df::register_function(graph, "norm", [](df::Output<float> a, df::Output<float> b) { return df::sqrt(a * a + b * b); },
                        {.is_inlined = true});
  const auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  using Norm = df::Output<float>(df::Output<float>, df::Output<float>);
  const auto y = df::find_function<Norm>(graph, "norm")(x, x + 1.0f);
  const df::Graph again = df::import_graph(df::to_graph_def(graph), df::standard_op_table());
  CHECK(df::to_graph_def(again).nodes.size() == df::to_graph_def(graph).nodes.size());
  df::Session session(graph);
  CHECK(num_run_of(session, {{x, df::Tensor<float>(3.0f)}}, y, "Call") == 0);
  CHECK(session.run({{x, df::Tensor<float>(3.0f)}}, y).scalar() == 5);
  for (const df::NodeDef& node : df::to_graph_def(again).nodes) {
    if (node.op == "Function") CHECK(std::get<bool>(node.attrs.at(0).second));
  }
}

TEST_CASE("an inlined body on another device, and over two, gives the same") {
  for (const std::string second : {"/cpu:0", "/cpu:1"}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, {});
    const auto f = df::function(graph, "f",
                                [&](InlinedScalar a) {
                                  const auto product = a * a;
                                  const auto on = graph.device(second);
                                  return df::sin(product) + x;
                                },
                                {.is_inlined = true});
    const auto y = [&] {
      const auto on = graph.device("/cpu:1");
      return f(f(x));
    }();
    const auto dy = df::gradients(y, x);
    df::Session session(graph, {.num_cpu_devices = 2});
    const auto [a, b] = session.run({{x, df::Tensor<double>(0.5)}}, y, dy);
    const double inner = std::sin(0.25) + 0.5, d_inner = std::cos(0.25) * 1.0 + 1.0;
    CHECK(a.scalar() == Approx(std::sin(inner * inner) + 0.5));
    CHECK(b.scalar() == Approx(std::cos(inner * inner) * 2 * inner * d_inner + 1.0));
  }
}
