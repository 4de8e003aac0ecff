#include <dflow/kernels/cpu/raw/vector_math.hpp>

#include "raw_checks.hpp"

#include <functional>
#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

template <class T> struct Function {
  const char* name;
  void (*ours)(std::int64_t, const T*, T*, CpuLevel);
  long double (*exact)(long double);
  double low, high;
  double ulps;
};

template <class T> std::vector<Function<T>> functions() {
  const bool single = std::is_same_v<T, float>;
  return {
      {"exp", vexp<T>, [](long double x) { return std::exp(x); }, single ? -110.0 : -750.0, single ? 90.0 : 711.0, 2},
      {"expm1", vexpm1<T>, [](long double x) { return std::expm1(x); }, single ? -30.0 : -50.0, single ? 90.0 : 711.0,
       6},
      {"log", vlog<T>, [](long double x) { return std::log(x); }, 0.0, 1000.0, 3},
      {"log1p", vlog1p<T>, [](long double x) { return std::log1p(x); }, -1.0, 100.0, 5},
      {"tanh", vtanh<T>, [](long double x) { return std::tanh(x); }, -20.0, 20.0, 5},
      {"sigmoid", vsigmoid<T>, [](long double x) { return 1 / (1 + std::exp(-x)); }, -60.0, 60.0, 4},
      {"sin", vsin<T>, [](long double x) { return std::sin(x); }, -1000.0, 1000.0, 3},
      {"cos", vcos<T>, [](long double x) { return std::cos(x); }, -1000.0, 1000.0, 3},
      {"erf", verf<T>, [](long double x) { return std::erf(x); }, -5.0, 5.0, 8},
  };
}

/// Distance in units of the last place of the exact value, whose spacing is never below the denormals'.
template <class T> double error_in_ulps(T got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(exact);
  if (got == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(got)) {
    // At the edge of the range a neighbour is right, too.
    return std::isinf(got) != std::isinf(rounded) && std::fabs(exact) > 0.999L * std::numeric_limits<T>::max() ? 1
                                                                                                               : 1e30;
  }
  const T size = std::max(std::fabs(rounded), std::numeric_limits<T>::min());
  const long double ulp = static_cast<long double>(std::nextafter(size, std::numeric_limits<T>::infinity())) - size;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / ulp);
}

TEMPLATE_TEST_CASE("elementary functions are right within a few units in the last place", "[raw][vector_math]", float,
                   double) {
  std::mt19937 generator(1);
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      INFO(f.name << " at " << cpu_level_name(level));
      std::vector<TestType> x(20011), y(x.size());
      std::uniform_real_distribution<double> wide_range(f.low, f.high), near_zero(-1e-2, 1e-2), exponent(-40, 0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double tiny = std::exp2(exponent(generator)) * (i % 2 == 0 ? 1 : -1);
        x[i] = static_cast<TestType>(i % 3 == 0 ? wide_range(generator) : i % 3 == 1 ? near_zero(generator) : tiny);
        if (f.low >= 0) x[i] = std::fabs(x[i]);
      }
      f.ours(static_cast<std::int64_t>(x.size()), x.data(), y.data(), level);
      double worst = 0;
      TestType where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = error_in_ulps(y[i], f.exact(static_cast<long double>(x[i])));
        if (error > worst) worst = error, where = x[i];
      }
      INFO("largest error " << worst << " ulp at " << where);
      CHECK(worst <= f.ulps);
    }
  }
}

TEMPLATE_TEST_CASE("an element's bits depend on no other element, nor on its place", "[raw][vector_math]", float, double) {
  using Limits = std::numeric_limits<TestType>;
  std::mt19937 generator(2);
  std::uniform_real_distribution<double> range(0.1, 20.0);
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      INFO(f.name << " at " << cpu_level_name(level));
      std::vector<TestType> x(603), together(x.size()), alone(x.size());
      for (TestType& v : x) v = static_cast<TestType>(range(generator));
      // Among the others, what is computed in another way.
      x[5] = Limits::quiet_NaN(), x[300] = TestType(1e15), x[301] = Limits::infinity(), x[602] = TestType(3e9);
      f.ours(static_cast<std::int64_t>(x.size()), x.data(), together.data(), level);
      for (std::size_t i = 0; i < x.size(); ++i) f.ours(1, &x[i], &alone[i], level);
      CHECK(same_bits(together, alone));
      std::vector<TestType> in_place(x);
      f.ours(static_cast<std::int64_t>(x.size()), in_place.data(), in_place.data(), level);
      CHECK(same_bits(together, in_place));
    }
  }
}

TEMPLATE_TEST_CASE("elementary functions of special values are those of the standard library", "[raw][vector_math]",
                   float, double) {
  using Limits = std::numeric_limits<TestType>;
  const TestType inf = Limits::infinity();
  const std::vector<TestType> special = {TestType(0),
                                         -TestType(0),
                                         inf,
                                         -inf,
                                         Limits::quiet_NaN(),
                                         Limits::denorm_min(),
                                         -Limits::denorm_min(),
                                         Limits::min(),
                                         Limits::max(),
                                         Limits::lowest(),
                                         TestType(-1),
                                         TestType(1),
                                         TestType(1e30),
                                         TestType(-2)};
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      for (std::size_t count : {special.size(), std::size_t{1}}) {
        for (std::size_t first = 0; first + count <= special.size(); ++first) {
          std::vector<TestType> y(special.begin() + static_cast<std::ptrdiff_t>(first),
                                  special.begin() + static_cast<std::ptrdiff_t>(first + count));
          f.ours(static_cast<std::int64_t>(count), y.data(), y.data(), level);
          for (std::size_t i = 0; i < count; ++i) {
            const TestType x = special[first + i];
            const long double exact = f.exact(static_cast<long double>(x));
            INFO(f.name << "(" << x << ") = " << y[i] << " at " << cpu_level_name(level));
            CHECK(error_in_ulps(y[i], exact) <= f.ulps);
            if (x == 0 && exact == 0) CHECK(std::signbit(y[i]) == std::signbit(exact));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
