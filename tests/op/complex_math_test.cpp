// Complex numbers in code for a GPU, beside std::complex: its functions follow annex G of the C standard.
#include <dflow/op/complex_math.hpp>

#include "catch.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

namespace math = dflow::math;

namespace {

template <class T>
bool is_near(T got, T want, T scale, T tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance * std::max(std::fabs(want), scale) + 4 * std::numeric_limits<T>::min();
}

template <class T>
void check(const char* what, math::Complex<T> got, std::complex<T> want, std::complex<T> a, std::complex<T> b = {}) {
  const T length = std::abs(want), scale = std::isfinite(length) ? length : T(0);
  const T tolerance = 24 * std::numeric_limits<T>::epsilon();
  if (is_near(got.re, want.real(), scale, tolerance) && is_near(got.im, want.imag(), scale, tolerance)) return;
  FAIL_CHECK(what << " of " << a << " and " << b << " is (" << got.re << "," << got.im << "), not " << want);
}

template <class T>
math::Complex<T> of(std::complex<T> z) {
  return {z.real(), z.imag()};
}

template <class T>
void check_all() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> parts{0, -T(0), 1, -1, T(0.5), T(0.8), T(0.6), 30, -40, 100, -800, inf, -inf, nan, T(1e-20)};
  std::mt19937 random(1);
  std::normal_distribution<T> normal(0, 3);
  for (int i = 0; i < 12; ++i) parts.push_back(normal(random));
  std::vector<std::complex<T>> numbers;
  for (const T re : parts) {
    for (const T im : parts) numbers.emplace_back(re, im);
  }
  for (const std::complex<T> z : numbers) {
    check("exp", exp(of(z)), std::exp(z), z);
    check("log", log(of(z)), std::log(z), z);
    check("sqrt", sqrt(of(z)), std::sqrt(z), z);
    check("sin", sin(of(z)), std::sin(z), z);
    check("cos", cos(of(z)), std::cos(z), z);
    check("tanh", tanh(of(z)), std::tanh(z), z);
    for (const std::complex<T> w : numbers) {
      check("product", of(z) * of(w), z * w, z, w);
      check("quotient", of(z) / of(w), z / w, z, w);
    }
  }
}

}  // namespace

TEST_CASE("complex numbers for a GPU are those of the host, also infinite ones and those that are none") {
  check_all<float>();
  check_all<double>();
}

TEST_CASE("quotients and logarithms of very large and very small complex numbers are exact") {
  const double large = std::numeric_limits<double>::max();
  using Z = math::Complex<double>;
  CHECK(Z(large, large) / Z(large, large) == Z(1));
  CHECK(Z(large, 0) / Z(0, large) == Z(0, -1));
  CHECK((Z(1e-300, 1e-300) / Z(1e-300, -1e-300)).im == Approx(1));
  CHECK(log(Z(large, large)).re == Approx(std::log(large) + std::log(2.0) / 2));
  CHECK(log(Z(1, 1e-8)).re == Approx(0.5e-16).epsilon(1e-10));
  CHECK(sqrt(Z(large, large)).re == Approx(std::sqrt(large) * 1.0986841134678098));
  const double least = std::numeric_limits<double>::denorm_min();
  CHECK(sqrt(Z(0, least)).re == Approx(std::sqrt(least) * std::sqrt(0.5)).epsilon(1e-10));
  CHECK(sqrt(Z(-least, 0)).im == Approx(std::sqrt(least)).epsilon(1e-10));
  CHECK(exp(Z(710, 1.5)).re == Approx(std::exp(700.0) * std::cos(1.5) * std::exp(10.0)));
  CHECK(pow(Z(0, 1), Z(2)).re == Approx(-1));
}
