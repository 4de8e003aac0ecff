#include <dflow/autodiff/loop_sums.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

using Matrix = df::Output<double>;
using Matrices = std::vector<Matrix>;

df::Tensor<double> sum_waves(const df::Shape& shape, int seed, double scale = 0.5) {
  df::Tensor<double> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = scale * std::sin(static_cast<double>(7 * seed + 3 * i + 1));
  }
  return tensor;
}

std::vector<double> flat(const df::Tensor<double>& tensor) { return {tensor.begin(), tensor.end()}; }

void require_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-9).margin(1e-12));
}

/// The next state after step `i`. The number is known when the steps are built one by one.
using BuildStep = std::function<Matrix(const Matrix& state, const Matrices& weights, df::Output<std::int32_t> i)>;

struct SumProgram {
  std::string name;
  BuildStep step;
  std::int64_t num_rows = 2;      ///< of the state, which has 6 columns
  int num_products_in_loop = 0;   ///< that the gradients of its weights take, in three iterations together
  int num_products_after_it = 1;  ///< and when these are over
  std::vector<df::Shape> weights{{6, 6}};
};

struct BuiltProgram {
  df::Output<std::int32_t> n;
  Matrix first;
  Matrix numbers;  ///< of all weights
  Matrices weights;
  Matrix by_weights;  ///< the gradients of all weights, one behind the other
  Matrix all;         ///< these, that of the first state, and of all these again
};

/// As one vector.
Matrix in_a_row(const Matrices& parts) {
  Matrices vectors;
  for (const Matrix& part : parts) vectors.push_back(df::reshape(part, {-1}));
  return df::concat(0, vectors);
}

void add_gradients(BuiltProgram& built, const Matrix& last) {
  std::vector<df::AnyOutput> xs(built.weights.begin(), built.weights.end());
  xs.emplace_back(built.first);
  const auto of = [&](const Matrix& y) {
    const std::vector<df::AnyOutput> ys{y};
    Matrices slopes;
    const std::vector<df::Gradient> all = df::gradients(ys, xs);
    for (std::size_t i = 0; i < xs.size(); ++i) slopes.emplace_back(df::densify(all[i], xs[i]));
    return slopes;
  };
  Matrices slopes = of(df::reduce_sum(last * last * last));
  built.by_weights = in_a_row({slopes.begin(), slopes.end() - 1});
  const Matrix once = in_a_row(slopes);
  built.all = df::concat(0, {once, in_a_row(of(df::reduce_sum(once * df::sin(once))))});
}

/// Builds a loop of any number of iterations, or a graph of `num_steps` steps.
BuiltProgram build_sums(df::Graph& graph, const SumProgram& program, int num_steps = -1) {
  BuiltProgram built;
  built.n = df::placeholder<std::int32_t>(graph, {});
  built.first = df::placeholder<double>(graph, {program.num_rows, 6});
  built.numbers = df::placeholder<double>(graph, {108});
  int begin = 0;
  for (const df::Shape& shape : program.weights) {
    const auto size = static_cast<int>(shape.num_elements());
    built.weights.push_back(df::reshape(df::slice(built.numbers, {begin}, {size}), {shape.dim(0), shape.dim(1)}));
    begin += size;
  }
  Matrix last = df::identity(built.first);
  if (num_steps < 0) {
    auto [i, state] = df::while_loop([&](auto i, auto) { return i < built.n; },
                                     [&](auto i, auto state) {
                                       return std::tuple{i + 1, program.step(state, built.weights, i)};
                                     },
                                     std::tuple{df::constant(graph, 0), last});
    last = state;
  }
  for (int i = 0; i < num_steps; ++i) last = program.step(last, built.weights, df::constant(graph, i));
  add_gradients(built, last);
  return built;
}

df::Tensor<double> run_sums(df::Session& session, const BuiltProgram& built, const Matrix& what, int n,
                            df::RunMetadata* metadata = nullptr) {
  const std::int64_t num_rows = built.first.shape().dim(0);
  return session.run({.trace = metadata != nullptr}, metadata,
                     {{built.n, df::Tensor<std::int32_t>(n)},
                      {built.first, sum_waves({num_rows, 6}, 1)},
                      {built.numbers, sum_waves({108}, 2)}},
                     what);
}

Matrix multiplied(const Matrix& state, const Matrices& weights, df::Output<std::int32_t> /*i*/) {
  return df::tanh(df::matmul(state, weights[0]));
}

std::vector<SumProgram> sum_programs() {
  std::vector<SumProgram> programs;
  programs.push_back({"one product", multiplied});
  programs.push_back({"a factor that is a variable of the loop", [](const Matrix& state, const Matrices& weights,
                                                                    auto) { return df::matmul(state, weights[0]); }});
  programs.push_back({"a transposed weight", [](const Matrix& state, const Matrices& weights, auto) {
                        return df::tanh(df::matmul(state, weights[0], {.transpose_b = true}));
                      }});
  programs.push_back({"two products with one weight",
                      [](const Matrix& state, const Matrices& weights, auto) {
                        return df::tanh(df::matmul(df::sin(df::matmul(state, weights[0])), weights[0]));
                      },
                      2, 0, 2});
  programs.push_back({"two weights",
                      [](const Matrix& state, const Matrices& weights, auto) {
                        return df::tanh(df::matmul(df::matmul(state, weights[0]), weights[1]));
                      },
                      2,
                      0,
                      2,
                      {{6, 9}, {9, 6}}});
  programs.push_back(
      {"a weight that is read in other ways, too", [](const Matrix& state, const Matrices& weights, auto) {
         return df::tanh(df::matmul(state, weights[0]) * df::reduce_sum(weights[0] * weights[0]));
       }});
  programs.push_back({"more rows than pay", multiplied, 4, 3, 0});
  programs.push_back({"as many rows as pay", multiplied, 3});
  programs.push_back({"a branch",
                      [](const Matrix& state, const Matrices& weights, df::Output<std::int32_t> i) {
                        return df::cond(
                            i < 2, [&] { return df::tanh(df::matmul(state, weights[0])); },
                            [&] { return Matrix(df::sin(state) * df::reduce_sum(weights[0])); });
                      },
                      2, 2, 0});
  programs.push_back({"a loop in the loop",
                      [](const Matrix& state, const Matrices& weights, df::Output<std::int32_t> i) {
                        auto [j, inner] =
                            df::while_loop([&](auto j, auto) { return j <= i; },
                                           [&](auto j, auto inner) {
                                             return std::tuple{j + 1, Matrix(df::tanh(df::matmul(inner, weights[0])))};
                                           },
                                           std::tuple{i * 0, state});
                        return Matrix(inner + state);
                      },
                      2, 3, 0});  // one after each time that the inner loop has run
  return programs;
}

/// The number of products that ran in the loop, one for each run, and after it.
std::pair<int, int> products_in_and_after(const df::RunMetadata& metadata) {
  int inside = 0, after = 0;
  for (const df::NodeStats& node : metadata.stats.nodes) {
    // Only products of the gradient that have the shape of a weight.
    if (node.op != "MatMul" || node.node.find("gradients") == std::string::npos) continue;
    if (node.output_shapes != "[6,6]" && node.output_shapes != "[6,9]" && node.output_shapes != "[9,6]") continue;
    ++(node.node.find("/body/") != std::string::npos ? inside : after);
  }
  return {inside, after};
}

}  // namespace

TEST_CASE("gradients of weights in a loop are those of its steps one by one, twice") {
  for (const SumProgram& program : sum_programs()) {
    df::Graph graph;
    const BuiltProgram loop = build_sums(graph, program);
    df::SessionOptions lowered;
    lowered.passes.lower_control_flow = true;
    df::Session session(graph), other(graph, lowered);
    for (const int n : {0, 1, 2, 4}) {
      INFO(program.name << ", " << n << " iterations");
      df::Graph steps;
      const BuiltProgram unrolled = build_sums(steps, program, n);
      df::Session by_steps(steps);
      const std::vector<double> wanted = flat(run_sums(by_steps, unrolled, unrolled.all, n));
      for (df::Session* each : {&session, &session, &other}) {
        require_near(flat(run_sums(*each, loop, loop.all, n)), wanted);
      }
    }
  }
}

TEST_CASE("products that a gradient sums are multiplied once after the loop where that costs no more memory") {
  for (const SumProgram& program : sum_programs()) {
    INFO(program.name);
    df::Graph graph;
    const BuiltProgram loop = build_sums(graph, program);
    df::Session session(graph);
    constexpr int n = 3;
    df::RunMetadata metadata;
    run_sums(session, loop, loop.by_weights, n, &metadata);
    const auto [inside, after] = products_in_and_after(metadata);
    CHECK(inside == program.num_products_in_loop);
    CHECK(after == program.num_products_after_it);
  }
}

TEST_CASE("gradients of a recurrent loop are those that TensorFlow gives, twice") {
  df::Graph graph;
  auto w = df::placeholder<double>(graph, {3, 3});
  auto u = df::placeholder<double>(graph, {2, 3});
  const auto x = df::TensorArray<double>::unstack(df::constant(graph, sum_waves({4, 1, 2}, 3, 1)));
  auto [i, h] = df::while_loop([](auto i, auto) { return i < 4; },
                               [&](auto i, auto h) {
                                 return std::tuple{i + 1, df::tanh(df::matmul(h, w) + df::matmul(x.read(i), u))};
                               },
                               std::tuple{df::constant(graph, 0), df::fill<double>(graph, {1, 3}, 0.0)});
  auto y = df::reduce_sum(h * h);
  auto [gw, gu] = df::gradients(y, w, u);
  auto [hw, hu] = df::gradients(df::reduce_sum(gw * df::constant(graph, sum_waves({3, 3}, 4, 1))), w, u);
  df::Session session(graph);
  const auto [value, of_w, of_u, again_w, again_u] =
      session.run({{w, sum_waves({3, 3}, 1)}, {u, sum_waves({2, 3}, 2)}}, y, gw, gu, hw, hu);
  const auto is = [](const df::Tensor<double>& tensor, const std::vector<double>& wanted) {
    const std::vector<double> values = flat(tensor);
    REQUIRE(values.size() == wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(values[k] == Approx(wanted[k]).epsilon(1e-8));
  };
  // tf.while_loop and tf.GradientTape of TensorFlow 2, in double.
  CHECK(value.scalar() == Approx(2.565088018).epsilon(1e-8));
  is(of_w, {0.2696964079, -0.2591442246, 0.2496121715, -0.2756553876, 0.2646650742, -0.2543100408, 0.2778326107,
            -0.266593276, 0.2556726838});
  is(of_u, {0.3487960842, -0.3304772714, 0.3023907774, -0.4568899383, 0.4305057736, -0.3827036592});
  is(again_w, {0.1988637569, -0.1412306337, 0.08025744063, -0.2229483715, 0.1655644984, -0.1051491371, 0.2434997579,
               -0.1867546678, 0.127310433});
  is(again_u, {0.2364485415, -0.2216767352, 0.2005518497, -0.2255266252, 0.2548099459, -0.2760859407});
}

TEST_CASE("products of loops whose bodies are on several devices") {
  const auto build = [](df::Graph& graph, bool is_placed) {
    const auto on = [&](const char* device, const auto& what) {
      if (!is_placed) return what();
      const auto here = graph.device(device);
      return what();
    };
    SumProgram program{"devices", [=](const Matrix& state, const Matrices& weights, auto) {
                         auto both = on("/cpu:1", [&] {
                           return df::matmul(on("/cpu:2", [&] { return df::sin(state); }), weights[0]);
                         });
                         return on("/cpu:0", [&] { return df::tanh(df::matmul(both, weights[0])); });
                       }};
    return build_sums(graph, program);
  };
  df::Graph graph, placed;
  const BuiltProgram one = build(graph, false), several = build(placed, true);
  df::Session session(graph);
  for (const int threads : {1, 3}) {
    for (const bool lowers : {false, true}) {
      df::SessionOptions options{.num_threads = threads, .num_cpu_devices = 3};
      options.passes.lower_control_flow = lowers;
      df::Session other(placed, options);
      for (const int n : {0, 1, 3}) {
        INFO(threads << " threads, " << n << " iterations");
        require_near(flat(run_sums(other, several, several.all, n)), flat(run_sums(session, one, one.all, n)));
      }
    }
  }
  df::Session other(placed, {.num_cpu_devices = 3});
  df::RunMetadata metadata;
  run_sums(other, several, several.by_weights, 3, &metadata);
  CHECK(products_in_and_after(metadata) == std::pair(0, 2));
}

TEST_CASE("a product stays in the loop where a number of rows is not known, or a factor is not of the loop") {
  const auto count = [](const df::PartialShape& shape, const auto& step) {
    df::Graph graph;
    auto first = df::placeholder<double>(graph, shape);
    auto w = df::placeholder<double>(graph, {6, 6});
    auto given = df::placeholder<double>(graph, {2, 6});
    auto still = df::identity(given);
    auto [i, last] = df::while_loop([](auto i, auto) { return i < 3; },
                                    [&](auto i, auto state) {
                                      return std::tuple{i + 1, Matrix(step(graph, state, w, still))};
                                    },
                                    std::tuple{df::constant(graph, 0), first}, {.shapes = {df::Shape{}, shape}});
    auto slope = df::gradients(df::reduce_sum(last * last), w);
    df::Session session(graph);
    df::RunMetadata metadata;
    session.run({.trace = true}, &metadata,
                {{first, sum_waves({2, 6}, 1)}, {w, sum_waves({6, 6}, 2)}, {given, sum_waves({2, 6}, 3)}}, slope);
    return products_in_and_after(metadata);
  };
  using Counts = std::pair<int, int>;
  const auto multiply = [](df::Graph&, auto state, auto w, auto) { return df::tanh(df::matmul(state, w)); };
  CHECK(count({2, 6}, multiply) == Counts{0, 1});
  CHECK(count({df::dynamic, 6}, multiply) == Counts{3, 0});
  CHECK(count({2, 6}, [](df::Graph&, auto state, auto w, auto still) {
          return df::tanh(df::matmul(still, w)) * state;
        }) == Counts{3, 0});
  CHECK(count({2, 6}, [](df::Graph& graph, auto state, auto w, auto) {
          return df::tanh(df::matmul(df::constant(graph, sum_waves({2, 6}, 4)), w)) * state;
        }) == Counts{3, 0});
}

TEST_CASE("a loop whose number of rows changes has the gradient of its steps") {
  const auto grow = [](const Matrix& state, const Matrix& w) {
    return Matrix(df::concat(0, {df::tanh(df::matmul(state, w)), df::slice(state, {0, 0}, {1, 6})}));
  };
  df::Graph graph;
  auto first = df::placeholder<double>(graph, {1, 6});
  auto w = df::placeholder<double>(graph, {6, 6});
  auto [i, grown] =
      df::while_loop([](auto i, auto) { return i < 3; },
                     [&](auto i, auto state) {
                       return std::tuple{i + 1, grow(state, w)};
                     },
                     std::tuple{df::constant(graph, 0), first}, {.shapes = {df::Shape{}, {df::dynamic, 6}}});
  auto steps = grow(grow(grow(first, w), w), w);
  auto slope = df::gradients(df::reduce_sum(grown * grown), w);
  auto wanted = df::gradients(df::reduce_sum(steps * steps), w);
  df::Session session(graph);
  const auto [a, b] = session.run({{first, sum_waves({1, 6}, 1)}, {w, sum_waves({6, 6}, 2)}}, slope, wanted);
  require_near(flat(a), flat(b));
}

TEST_CASE("several gradients of one loop, and a copy of the graph, have their products") {
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {2, 6}, {.name = "x"});
  auto w = df::placeholder<double>(graph, {6, 6}, {.name = "w"});
  auto [i, last] = df::while_loop([](auto i, auto) { return i < 3; },
                                  [&](auto i, auto state) {
                                    return std::tuple{i + 1, df::tanh(df::matmul(state, w))};
                                  },
                                  std::tuple{df::constant(graph, 0), x});
  auto once = df::gradients(df::reduce_sum(last), w);
  auto twice = df::gradients(df::reduce_sum(last) * 2.0, w);
  df::Session session(graph);
  const auto [a, b] = session.run({{x, sum_waves({2, 6}, 1)}, {w, sum_waves({6, 6}, 2)}}, once, twice);
  for (std::int64_t k = 0; k < 36; ++k) CHECK(b.data()[k] == Approx(2 * a.data()[k]));
  df::Graph copy = df::import_graph(df::to_graph_def(graph), df::standard_op_table());
  df::Session other(copy);
  const df::Tensor<double> c =
      other.run({{Matrix(copy.output("x")), sum_waves({2, 6}, 1)}, {Matrix(copy.output("w")), sum_waves({6, 6}, 2)}},
                Matrix(copy.output(once.name())));
  CHECK(flat(c) == flat(a));
}
