// Gradients that are sums over iterations and calls. In 16 bits they would stand still: 256 + 1 is 256 in bfloat16,
// and 2048 + 1 is 2048 in half precision.
#include <dflow/autodiff/gradients.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using RunningSum = df::Output<float>;
using Number = df::Output<std::int32_t>;
constexpr std::int32_t num_terms = 4000;

RunningSum zero_sum(df::Graph& graph) { return df::constant(graph, 0.0f); }
df::Output<std::int32_t> first(df::Graph& graph) { return df::constant(graph, 0); }

/// Programs that add x to a sum, `num_terms` times.
template <class T>
struct Program {
  std::string name;
  std::function<RunningSum(df::Graph&, const df::Output<T>& x)> build;
};

template <class T>
std::vector<Program<T>> loops_that_read() {
  using X = df::Output<T>;
  std::vector<Program<T>> all;
  const auto counted = [](std::int32_t n) { return [n](auto i, auto...) { return i < n; }; };
  all.push_back({"an edge around the loop", [=](df::Graph& graph, const X& x) {
                   return std::get<1>(df::while_loop(
                       counted(num_terms),
                       [&](auto i, auto sum) {
                         return std::tuple{i + 1, sum + df::cast<float>(x)};
                       },
                       std::tuple{first(graph), zero_sum(graph)}));
                 }});
  all.push_back({"a variable that passes through", [=](df::Graph& graph, const X& x) {
                   return std::get<1>(df::while_loop(
                       counted(num_terms),
                       [&](auto i, auto sum, auto w) {
                         return std::tuple{i + 1, sum + df::cast<float>(w), w};
                       },
                       std::tuple{first(graph), zero_sum(graph), x}));
                 }});
  all.push_back({"an edge around two loops", [=](df::Graph& graph, const X& x) {
                   return std::get<1>(df::while_loop(
                       counted(40),
                       [&](auto i, auto sum) {
                         return std::tuple{i + 1, std::get<1>(df::while_loop(
                                                      counted(num_terms / 40),
                                                      [&](auto j, auto inner) {
                                                        return std::tuple{j + 1, inner + df::cast<float>(x)};
                                                      },
                                                      std::tuple{first(graph), sum}))};
                       },
                       std::tuple{first(graph), zero_sum(graph)}));
                 }});
  all.push_back({"a variable that passes through two loops and a branch", [=](df::Graph& graph, const X& x) {
                   return std::get<1>(df::while_loop(
                       counted(40),
                       [&](auto i, auto sum, auto w) {
                         const auto [j, inner, v] = df::while_loop(
                             counted(num_terms / 40),
                             [&](auto k, auto part, auto u) {
                               const auto kept = df::cond(
                                   k < 1000, [&] { return u; }, [&] { return X(u * T(2.0f)); });
                               return std::tuple{k + 1, part + df::cast<float>(u), kept};
                             },
                             std::tuple{first(graph), sum, w});
                         static_cast<void>(j);
                         return std::tuple{i + 1, inner, v};
                       },
                       std::tuple{first(graph), zero_sum(graph), x}));
                 }});
  all.push_back({"an edge around a branch", [=](df::Graph& graph, const X& x) {
                   return std::get<1>(df::while_loop(
                       counted(num_terms),
                       [&](auto i, auto sum) {
                         return std::tuple{i + 1, df::cond(
                                                      i < 0, [&] { return sum; },
                                                      [&] { return RunningSum(sum + df::cast<float>(x)); })};
                       },
                       std::tuple{first(graph), zero_sum(graph)}));
                 }});
  all.push_back({"an edge around a function", [=](df::Graph& graph, const X& x) {
                   const auto f =
                       df::function(graph, "f", [&](RunningSum sum) { return RunningSum(sum + df::cast<float>(x)); });
                   return std::get<1>(df::while_loop(counted(num_terms),
                                                     [&](auto i, auto sum) {
                                                       return std::tuple{i + 1, f(sum)};
                                                     },
                                                     std::tuple{first(graph), zero_sum(graph)},
                                                     {.shapes = {df::PartialShape({}), df::PartialShape({})}}));
                 }});
  all.push_back({"an element of an array", [=](df::Graph& graph, const X& x) {
                   const auto array = df::TensorArray<T>::unstack(df::reshape(x, {1}));
                   return std::get<1>(
                       df::while_loop(counted(num_terms),
                                      [&](auto i, auto sum) {
                                        return std::tuple{i + 1, sum + df::cast<float>(array.read(first(graph)))};
                                      },
                                      std::tuple{first(graph), zero_sum(graph)},
                                      {.shapes = {df::PartialShape({}), df::PartialShape({})}}));
                 }});
  const auto rows = [](df::Graph& graph) { return df::constant(graph, df::Tensor<T>::full({num_terms}, T(1.0f))); };
  all.push_back({"map", [=](df::Graph& graph, const X& x) {
                   const auto products = df::map([&](const auto& row) { return row * x; }, rows(graph));
                   return df::reduce_sum(df::cast<float>(products));
                 }});
  all.push_back({"scan", [=](df::Graph& graph, const X& x) {
                   const auto products = df::scan([&](auto last, auto row) { return last * T(0.0f) + row * x; },
                                                  rows(graph), df::constant(graph, T(0.0f)));
                   return df::reduce_sum(df::cast<float>(products));
                 }});
  all.push_back({"foldl", [=](df::Graph& graph, const X& x) {
                   return df::foldl([&](auto sum, auto row) { return sum + df::cast<float>(row * x); }, rows(graph),
                                    zero_sum(graph));
                 }});
  all.push_back({"foldr", [=](df::Graph& graph, const X& x) {
                   return df::foldr([&](auto sum, auto row) { return sum + df::cast<float>(row * x); }, rows(graph),
                                    zero_sum(graph));
                 }});
  return all;
}

template <class T>
double as_double(const df::Tensor<T>& tensor) {
  return static_cast<double>(static_cast<float>(tensor.scalar()));
}

}  // namespace

TEMPLATE_TEST_CASE("the gradient of what a loop reads in each iteration is rounded once", "[autodiff]", df::Half,
                   df::BFloat16) {
  for (const Program<TestType>& program : loops_that_read<TestType>()) {
    INFO(program.name);
    for (const bool lowers : {false, true}) {
      df::Graph graph;
      const auto x = df::placeholder<TestType>(graph, df::Shape{});
      const auto dx = df::gradients(program.build(graph, x), x);
      df::Session session(graph, {.passes = {.lower_control_flow = lowers}});
      CHECK(as_double(session.run({{x, TestType(1.0f)}}, dx)) == num_terms);
    }
  }
}

TEMPLATE_TEST_CASE("a second derivative of 16-bit floats is a sum that is rounded once, too", "[autodiff]", df::Half,
                   df::BFloat16) {
  // The program adds x, so that of x^2 adds x^2: the derivatives are 2 x and 2 for each term.
  for (const Program<TestType>& program : loops_that_read<TestType>()) {
    INFO(program.name);
    df::Graph graph;
    const auto x = df::placeholder<TestType>(graph, df::Shape{});
    const auto dx = df::gradients(program.build(graph, x * x), x);
    const auto ddx = df::gradients(dx, x);
    df::Session session(graph);
    const auto [first_order, second_order] = session.run({{x, TestType(0.5f)}}, dx, ddx);
    CHECK(as_double(first_order) == num_terms);
    CHECK(as_double(second_order) == 2 * num_terms);
  }
  // The square inside of the loop: the sums over its iterations are differentiated.
  df::Graph graph;
  const auto x = df::placeholder<TestType>(graph, df::Shape{});
  const auto [i, sum] = df::while_loop([](auto i, auto) { return i < num_terms; },
                                       [&](auto i, auto sum) {
                                         return std::tuple{i + 1, sum + df::cast<float>(x * x)};
                                       },
                                       std::tuple{first(graph), zero_sum(graph)});
  static_cast<void>(i);
  const auto dx = df::gradients(sum, x), ddx = df::gradients(dx, x);
  df::Session session(graph);
  const auto [first_order, second_order] = session.run({{x, TestType(0.5f)}}, dx, ddx);
  CHECK(as_double(first_order) == num_terms);
  CHECK(as_double(second_order) == 2 * num_terms);
}

TEST_CASE("sums of float and double over iterations have the bits that they had", "[autodiff]") {
  // In the element type, in the order of the iterations, from the last one on.
  const auto check = [](auto one) {
    using T = decltype(one);
    df::Graph graph;
    const auto x = df::placeholder<T>(graph, df::Shape{});
    const auto rows = df::placeholder<T>(graph, {df::dynamic});
    const auto dx = df::gradients(df::reduce_sum(df::map([&](const auto& row) { return row * x; }, rows)), x);
    df::Tensor<T> values({1000});
    T sum = 0;
    for (std::int64_t i = 0; i < 1000; ++i) values.data()[i] = T(1) / static_cast<T>(i + 3);
    for (std::int64_t i = 1000; i-- > 0;) sum += values.data()[i];
    df::Session session(graph);
    CHECK(session.run({{x, T(2)}, {rows, values}}, dx).scalar() == sum);
  };
  check(1.0f);
  check(1.0);
}

TEMPLATE_TEST_CASE("gradients that are added one by one are rounded once", "[autodiff]", df::Half, df::BFloat16) {
  for (const df::GradientAggregation aggregation :
       {df::GradientAggregation::add_n, df::GradientAggregation::accumulate}) {
    df::Graph graph;
    const auto x = df::placeholder<TestType>(graph, df::Shape{});
    RunningSum sum = df::cast<float>(x);
    for (int i = 1; i < num_terms; ++i) sum = sum + df::cast<float>(x);
    const df::AnyOutput y = sum, of = x;
    const std::vector<df::Gradient> all = df::gradients({&y, 1}, {&of, 1}, {.aggregation = aggregation});
    const df::Output<TestType> dx(df::densify(all[0], of));
    df::Session session(graph);
    CHECK(as_double(session.run({{x, TestType(1.0f)}}, dx)) == num_terms);
  }
}

TEMPLATE_TEST_CASE("the gradient of a function that calls itself is rounded once", "[autodiff][recursion]", df::Half,
                   df::BFloat16) {
  // 1000 terms of x: an edge around the function, or an argument that it passes on. And 4 terms of a call.
  df::Graph graph;
  using X = df::Output<TestType>;
  const auto x = df::placeholder<TestType>(graph, df::Shape{});
  const auto n = df::constant(graph, std::int32_t{1000});
  const df::PartialShape scalar({});
  const auto around = df::recursive_function<RunningSum(Number)>(
      graph, "around",
      [&](const auto& self, Number k) {
        return df::cond(
            k < 1, [&] { return zero_sum(graph); },
            [&] { return RunningSum(self(k - 1) + df::cast<float>(x) * 4.0f); });
      },
      {.shapes = {scalar}, .result_shapes = {scalar}});
  const auto passed = df::recursive_function<RunningSum(Number, X)>(
      graph, "passed",
      [&](const auto& self, Number k, X v) {
        return df::cond(
            k < 1, [&] { return zero_sum(graph); },
            [&] { return RunningSum(self(k - 1, v) + df::cast<float>(v) * 4.0f); });
      },
      {.shapes = {scalar, scalar}, .result_shapes = {scalar}});
  const auto by_edge = df::gradients(around(n), x), by_argument = df::gradients(passed(n, x), x);
  df::Session session(graph);
  const auto [a, b] = session.run({{x, TestType(1.0f)}}, by_edge, by_argument);
  CHECK(as_double(a) == 4000);
  CHECK(as_double(b) == 4000);
}

TEST_CASE("a gradient that a program gives has the element type of its edge", "[autodiff]") {
  df::Graph graph;
  const auto x = df::placeholder<df::BFloat16>(graph, {2});
  const df::AnyOutput y = x * x, of = x, wide = df::constant<float>(graph, {1.0f, 2.0f});
  CHECK(code_of([&] {
          static_cast<void>(df::gradients({&y, 1}, {&of, 1}, {.grad_ys = {&wide, 1}}));
        }) == df::Code::invalid_argument);
}
