#include <dflow/ops/control/check.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/control/while_loop.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <limits>
#include <string>

using namespace dflow;

TEST_CASE("an assertion that holds lets the step pass, one that fails prints its data") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  const auto holds = placeholder<bool>(graph, {});
  const auto check = assert_that(holds, {x, constant(graph, "x went astray")}, {.summarize = 2});
  Session session(graph, {.num_threads = 1});
  const Tensor<float> values({3}, {1.5f, 2.5f, 3.5f});
  session.run({{x, values}, {holds, true}}, check);
  const std::string error = error_of([&] { session.run({{x, values}, {holds, false}}, check); });
  CHECK(contains(error, "INVALID_ARGUMENT"));
  CHECK(contains(error, "1.5, 2.5"));
  CHECK(error.find("3.5") == std::string::npos);
  CHECK(contains(error, "[x went astray]"));  // a text stands there as it is
  CHECK(contains(error, "Assert"));
  session.run({{x, values}, {holds, true}}, check);
}

TEST_CASE("a condition that is no scalar is refused when the assertion is built") {
  Graph graph;
  CHECK(contains(error_of([&] { assert_that(placeholder<bool>(graph, {1}), {}); }), "rank 0"));
}

TEST_CASE("what depends on an assertion does not come without it") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = with_dependencies({assert_that(x > 0.0f, {x})}, x * 2.0f);
  Session session(graph, {.num_threads = 1});
  CHECK(session.run({{x, 2.0f}}, y).scalar() == 4.0f);
  CHECK(contains(error_of([&] { session.run({{x, -2.0f}}, y); }), "assertion failed"));
}

TEST_CASE("the edges of a tuple come once all are there") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto n = constant(graph, std::int64_t{7});
  const auto [a, b] = tuple(x, n);
  CHECK(a.node().control_inputs == b.node().control_inputs);
  CHECK_FALSE(a.node().control_inputs.empty());
  Session session(graph, {.num_threads = 1});
  const auto [va, vb] = session.run({{x, 1.0f}}, a, b);
  CHECK(va.scalar() == 1.0f);
  CHECK(vb.scalar() == 7);
}

TEST_CASE("a group runs all of its operations") {
  Graph graph;
  const auto holds = placeholder<bool>(graph, {}), also = placeholder<bool>(graph, {});
  const Operation all = group({assert_that(holds, {}), assert_that(also, {})});
  CHECK(all.node().control_inputs.size() == 2);
  Session session(graph, {.num_threads = 1});
  session.run({{holds, true}, {also, true}}, all);
  CHECK(contains(error_of([&] { session.run({{holds, true}, {also, false}}, all); }), "assertion failed"));
  CHECK(contains(error_of([&] { session.run({{holds, false}, {also, true}}, all); }), "assertion failed"));
  CHECK(contains(error_of([&] { group({}); }), "INVALID_ARGUMENT"));
}

TEMPLATE_TEST_CASE("numbers that are finite pass, others are named", "", float, double, Half, BFloat16) {
  using T = TestType;
  Graph graph;
  const auto x = placeholder<T>(graph, {3});
  const auto y = check_numerics(x, "loss went astray");
  Session session(graph, {.num_threads = 1});
  const auto run = [&](float a, float b) { return session.run({{x, Tensor<T>({3}, {T(a), T(1.0f), T(b)})}}, y); };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CHECK(static_cast<float>(run(2, -3)(2)) == -3.0f);
  const std::string infinite = error_of([&] { run(1, -inf); });
  CHECK(contains(infinite, "loss went astray"));
  CHECK(contains(infinite, "Inf"));
  CHECK(infinite.find("NaN") == std::string::npos);
  const std::string not_a_number = error_of([&] { run(nan, 0); });
  CHECK(contains(not_a_number, "NaN"));
  CHECK(not_a_number.find("Inf") == std::string::npos);
  CHECK(contains(error_of([&] { run(nan, inf); }), "NaN and Inf"));
}

TEST_CASE("the gradient of a numeric check is checked too") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  const auto dx = gradients(check_numerics(x, "y") * x, x);
  Session session(graph, {.num_threads = 1});
  CHECK(session.run({{x, Tensor<float>({2}, {3, -1})}}, dx)(0) == 6.0f);
  CHECK(contains(error_of([&] {
                   session.run({{x, Tensor<float>({2}, {3, std::numeric_limits<float>::infinity()})}}, dx);
                 }),
                 "Inf"));
}

TEST_CASE("a loop has at least one iteration under way, and keeps no bytes at least") {
  Graph graph;
  const auto build_loop = [&](std::int64_t parallel, std::int64_t bytes) {
    static_cast<void>(while_loop([](auto i) { return i < 3; }, [](auto i) { return std::tuple{i + 1}; },
                                 std::tuple{constant(graph, 0)},
                                 {.parallel_iterations = parallel, .max_kept_bytes = bytes}));
  };
  build_loop(1, -1);
  build_loop(1, 0);
  CHECK_THAT(error_of([&] { build_loop(0, -1); }), Catch::Contains("parallel_iterations is 0, less than 1"));
  CHECK_THAT(error_of([&] { build_loop(1, -2); }), Catch::Contains("max_kept_bytes is -2, less than nothing"));
}
