#include <dflow/session/check_gradients.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <source_location>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

template <class T>
Tensor<T> checked_values(const Shape& shape) {
  Tensor<T> values(shape);
  for (std::int64_t i = 0; i < values.num_elements(); ++i) {
    const double value = 0.9 + 0.4 * std::sin(static_cast<double>(3 * i + 1));
    if constexpr (is_complex_element<T>) {
      values.data()[i] =
          T(static_cast<typename T::value_type>(value), static_cast<typename T::value_type>(0.3 * value));
    } else {
      values.data()[i] = static_cast<T>(value);
    }
  }
  return values;
}

/// x twice forward, and three times backward.
struct WronglyDoubled : Op<"WronglyDoubled", FloatTypes> {
  using Inputs = In<T>;
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
  static void gradient(GradientContext& context) { context.set_dx(0, 3.0 * context.dy()); }
};

}  // namespace

template <class T>
struct dflow::Kernel<WronglyDoubled, dflow::Cpu, T> {
  void operator()(dflow::KernelContext& context) const {
    const dflow::Tensor<T>& x = context.input<T>(0);
    dflow::Tensor<T>& y = context.allocate_output<T>(0, x.shape());
    for (std::int64_t i = 0; i < x.num_elements(); ++i) y.data()[i] = static_cast<T>(x.data()[i] + x.data()[i]);
  }
};

TEMPLATE_TEST_CASE("Right gradients of every element type agree with finite differences", "", float, double, Half,
                   BFloat16, std::complex<float>, std::complex<double>) {
  using T = TestType;
  Graph graph;
  const auto x = placeholder<T>(graph, {2, 3});
  const auto w = placeholder<T>(graph, {3});
  const auto y = x * w * x + w;
  Session session(graph);
  const std::vector<Feed> at{{x, checked_values<T>({2, 3})}, {w, checked_values<T>({3})}};
  const GradientCheck check = check_gradients(session, y, at);
  INFO(check.to_string());
  CHECK(check.to_string().starts_with("ok: the largest error is "));
  CHECK(check.to_string().find(", within the allowed ") != std::string::npos);
  CHECK(check.is_ok());
  CHECK(check.max_error > 0);
  CHECK(check_gradients(session, reduce_sum(y), at).is_ok());
  if constexpr (is_complex_element<T>) CHECK(check_gradients(session, exp(x) / x, {at[0]}).is_ok());
}

TEST_CASE("Gradients through products, branches and loops agree with finite differences") {
  Graph graph;
  const auto x = placeholder<double>(graph, {2, 2});
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto [i, power] =
      while_loop([&](auto i, auto) { return i < n; },
                 [&](auto i, auto power) {
                   auto next = cond(
                       equal(i, constant(graph, 1)), [&] { return sin(power); }, [&] { return matmul(power, x); });
                   return std::tuple{i + 1, next};
                 },
                 std::tuple{constant(graph, 0), x});
  Session session(graph);
  for (const int steps : {0, 1, 2, 4}) {
    const GradientCheck check =
        check_gradients(session, power, {{x, checked_values<double>({2, 2})}}, {.feeds = {{n, steps}}});
    INFO(steps << " steps: " << check.to_string());
    CHECK(check.is_ok());
  }
  // A computed edge may be an x too. An x that y does not depend on has no gradient.
  const auto z = exp(x);
  const auto other = placeholder<double>(graph, {2});
  CHECK(check_gradients(session, z * z + x,
                        {{z, checked_values<double>({2, 2})},
                         {x, checked_values<double>({2, 2})},
                         {other, checked_values<double>({2})}})
            .is_ok());
}

TEST_CASE("A wrong gradient is found, with its x, element and values") {
  Graph graph;
  const auto x = placeholder<double>(graph, {3}, {.name = "given"});
  const auto w = placeholder<double>(graph, {2, 2}, {.name = "weights"});
  const auto wrong = Output<double>(AnyOutput(build<WronglyDoubled>({w})));
  Session session(graph, {.ops = standard_ops + ops<WronglyDoubled>});
  const auto y = reduce_sum(x * x) + reduce_sum(wrong);
  const GradientCheck check =
      check_gradients(session, y, {{x, checked_values<double>({3})}, {w, checked_values<double>({2, 2})}});
  CHECK_FALSE(check.is_ok());
  CHECK(check.input == 1);
  CHECK(check.name == "weights");
  CHECK(check.index.size() == 2);
  CHECK(check.gradient.real() / check.difference.real() == Approx(1.5));
  CHECK(contains(check.to_string(), "x 'weights' at ["));
  CHECK(contains(check.to_string(), "wrong: the largest error is "));
  CHECK(contains(check.to_string(), ", more than the allowed 1e-05 ("));
  CHECK(
      check_gradients(session, y, {{x, checked_values<double>({3})}}, {.feeds = {{w, checked_values<double>({2, 2})}}})
          .is_ok());
  // At a kink, differences are no gradient. A value that is no number is no gradient.
  CHECK_FALSE(check_gradients(session, relu(x), {{x, Tensor<double>({3}, {1, 0, 1})}}).is_ok());
  const GradientCheck infinite = check_gradients(session, sqrt(x), {{x, Tensor<double>({3}, {1, 0, 1})}});
  CHECK(std::isinf(infinite.max_error));
  CHECK(infinite.index == std::vector<std::int64_t>{1});
}

TEST_CASE("What cannot be checked is an error of the line that asks") {
  Graph graph;
  const auto x = placeholder<double>(graph, {2});
  const auto count = placeholder<std::int32_t>(graph, {2});
  Session session(graph);
  const Feed at(x, checked_values<double>({2}));
  CHECK(contains(error_of([&] { return check_gradients(session, x * x, {}).is_ok(); }), "there is no x"));
  CHECK(contains(error_of([&] { return check_gradients(session, count, {at}).is_ok(); }), "int32"));
  CHECK(contains(error_of([&] {
                   return check_gradients(session, x, {at, {count, Tensor<std::int32_t>({2}, {1, 2})}}).is_ok();
                 }),
                 "x 1"));
  CHECK(
      contains(error_of([&] { return check_gradients(session, AnyOutput(), {at}).is_ok(); }), "y is an empty Output"));
  CHECK(contains(error_of([&] { return check_gradients(session, x, {at}, {.delta = 0}).is_ok(); }), "delta"));
  const unsigned line = std::source_location::current().line() + 1;
  CHECK(status_of([&] { return check_gradients(session, x, {}).is_ok(); }).where().line() == line);
  // Without elements there is no error.
  const auto none = placeholder<double>(graph, {0});
  CHECK(check_gradients(session, none * 2.0, {{none, Tensor<double>({0}, {})}}).is_ok());
}
