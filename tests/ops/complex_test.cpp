// Complex numbers and their parts.
#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cmath>
#include <complex>
#include <vector>

namespace df = dflow;

namespace {

using Z = std::complex<double>;

}  // namespace

TEST_CASE("complex numbers are made of parts and taken apart") {
  df::Graph graph;
  const auto re = df::constant(graph, df::Tensor<float>({2}, {3.0f, -4.0f}));
  const auto z = df::complex(re, 4.0f);
  const auto [x, y, length, same, phi] =
      df::Session(graph).run(df::real(z), df::imag(z), df::abs(z), df::complex_abs(z), df::angle(z));
  CHECK(x.span()[1] == -4);
  CHECK(y.span()[1] == 4);
  CHECK(length.span()[0] == 5);
  CHECK(same.span()[0] == 5);
  CHECK(phi.span()[1] == Approx(3 * std::acos(-1.0) / 4));
}

// Expected: TensorFlow 2.21, tf.GradientTape of abs, angle, real and imag at these points for these output gradients.
// For a function f of x + i y they are df/dx + i df/dy.
TEST_CASE("gradients of parts of complex numbers are TensorFlow's") {
  df::Graph graph;
  const auto z = df::placeholder<Z>(graph, {3});
  const auto weights = df::constant(graph, df::Tensor<double>({3}, {1.0, 2.0, -0.5}));
  const auto slope = [&](const df::Output<double>& part) { return df::gradients(df::reduce_sum(part * weights), z); };
  df::Session session(graph);
  const df::Tensor<Z> at({3}, {Z(3, 4), Z(-1, 0.5), Z(0, -2)});
  const auto check = [&](const df::Output<Z>& edge, std::vector<Z> wanted) {
    const df::Tensor<Z> got = session.run({{z, at}}, edge);
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(got.span()[i] - wanted[i]) < 1e-15);
  };
  check(slope(df::abs(z)), {Z(0.6, 0.8), Z(-1.7888543819998317, 0.8944271909999159), Z(0, 0.5)});
  check(slope(df::angle(z)), {Z(-0.16, 0.12), Z(-0.8, -1.6), Z(-0.25, 0)});
  check(slope(df::real(z)), {1, 2, -0.5});
  check(slope(df::imag(z)), {Z(0, 1), Z(0, 2), Z(0, -0.5)});
  const auto zero = df::constant(graph, df::Tensor<Z>({1}, {Z(0)}));
  CHECK(df::Session(graph).run(df::gradients(df::abs(zero), zero)).span()[0] == Z(0));
}

TEST_CASE("gradients through complex numbers agree with differences, of second order too") {
  df::Graph graph;
  const auto a = df::placeholder<double>(graph, {2, 2}), b = df::placeholder<double>(graph, {2});
  const auto z = df::complex(a, b);  // b is broadcast
  const auto w = z * z;
  const auto y = df::abs(w) + df::angle(w) * df::real(z) + df::imag(w);
  const auto da = df::gradients(df::reduce_sum(y * y), a);
  df::Session session(graph);
  const df::Tensor<double> at_a({2, 2}, {1, 2, -1.5, 0.5}), at_b({2}, {0.75, -1});
  CHECK(df::check_gradients(session, y, {{a, at_a}, {b, at_b}}).is_ok());
  CHECK(df::check_gradients(session, da, {{a, at_a}, {b, at_b}}).is_ok());
}
