#include <dflow/kernels/cpu/routines/math/vector_math.hpp>

#include "checks.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

template <class T>
struct Function {
  const char* name;
  void (*ours)(std::int64_t, const T*, T*, CpuLevel);
  long double (*exact)(long double);
  double low, high;
  double ulps;
};

template <class T>
std::vector<Function<T>> functions() {
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

/// The distance in units of the last place of the exact value. The spacing is never below the denormals' spacing.
template <class T>
double error_in_ulps(T got, long double exact) {
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

TEMPLATE_TEST_CASE("elementary functions are right within a few units in the last place", "[routines][vector_math]",
                   float, double) {
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

/// The neighbours of `x`: `count` numbers below it, `x` itself, and as many above.
template <class T>
std::vector<T> neighbours(T x, int count) {
  std::vector<T> all(static_cast<std::size_t>(2 * count + 1), x);
  const auto middle = static_cast<std::size_t>(count);
  for (std::size_t i = 1; i <= middle; ++i) {
    all[middle - i] = std::nextafter(all[middle - i + 1], -std::numeric_limits<T>::infinity());
    all[middle + i] = std::nextafter(all[middle + i - 1], std::numeric_limits<T>::infinity());
  }
  return all;
}

/// The places at which one formula ends and another begins, and at which a function reaches its limit. They are from
/// the sources and from common practice: the multiples of ln 2 / 2 in exp, 0.625 of tanh in double, 1 of erf,
/// sqrt(1/2) of log.
template <class T>
std::vector<T> branch_points() {
  const bool single = std::is_same_v<T, float>;
  std::vector<double> points = {0,
                                1e-8,
                                1e-4,
                                0.0004,
                                0.001,
                                0.01,
                                0.1,
                                0.25,
                                0.34657359027997264,
                                0.5,
                                0.625,
                                0.70710678118654752,
                                1,
                                1.0397207708399179,
                                1.5,
                                2,
                                3,
                                4,
                                5,
                                6,
                                6.5,
                                7,
                                7.90531110763549805,
                                8,
                                9,
                                9.010913,
                                10,
                                15,
                                16,
                                17.3286795139986,
                                18,
                                18.7,
                                19.1,
                                20,
                                22,
                                30,
                                36.7,
                                37,
                                40,
                                44,
                                50,
                                80,
                                86.5,
                                87.33,
                                88};
  for (const double x :
       single ? std::vector<double>{88.72, 89, 103.9, 104} : std::vector<double>{700, 709.7, 710, 745, 746}) {
    points.push_back(x);
  }
  std::vector<T> all;
  for (const double x : points) {
    all.push_back(static_cast<T>(x));
    all.push_back(static_cast<T>(-x));
  }
  return all;
}

struct Bounds {
  const char* name;
  double low, high;
  bool is_odd;
};

TEMPLATE_TEST_CASE("elementary functions stay in their range, rise where they should and are odd or exact at zero",
                   "[routines][vector_math]", float, double) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Bounds> all = {{"exp", 0, inf, false},      {"expm1", -1, inf, false}, {"log", -inf, inf, false},
                                   {"log1p", -inf, inf, false}, {"tanh", -1, 1, true},     {"sigmoid", 0, 1, false},
                                   {"sin", -1, 1, true},        {"cos", -1, 1, false},     {"erf", -1, 1, true}};
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      const auto bounds =
          std::find_if(all.begin(), all.end(), [&](const Bounds& b) { return std::string(b.name) == f.name; });
      REQUIRE(bounds != all.end());
      const bool rises = std::string(f.name) != "sin" && std::string(f.name) != "cos";
      INFO(f.name << " at " << cpu_level_name(level));
      std::size_t outside = 0, falls = 0, not_odd = 0;
      TestType where = 0;
      for (const TestType point : branch_points<TestType>()) {
        const std::vector<TestType> x = neighbours(point, 150);
        std::vector<TestType> y(x.size()), mirrored(x.size());
        f.ours(static_cast<std::int64_t>(x.size()), x.data(), y.data(), level);
        for (std::size_t i = 0; i < x.size(); ++i) mirrored[i] = -x[i];
        f.ours(static_cast<std::int64_t>(x.size()), mirrored.data(), mirrored.data(), level);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (std::isnan(y[i])) continue;
          const bool is_outside = static_cast<double>(y[i]) < bounds->low || static_cast<double>(y[i]) > bounds->high;
          const bool is_not_odd = bounds->is_odd && mirrored[i] != -y[i];
          // Each of two neighbours may have the function's error; a step between two formulas is larger.
          const double ulp =
              std::nextafter(std::fabs(y[i]), std::numeric_limits<TestType>::infinity()) - std::fabs(y[i]);
          const bool is_fall = rises && i > 0 && y[i] < y[i - 1] - 2 * f.ulps * ulp;
          if (is_outside || is_not_odd || is_fall) where = x[i];
          outside += is_outside, not_odd += is_not_odd, falls += is_fall;
        }
      }
      INFO("last at " << where);
      CHECK(outside == 0);
      CHECK(not_odd == 0);
      CHECK(falls == 0);
    }
    for (const TestType zero : {TestType(0), -TestType(0)}) {
      TestType y = 7;
      vexp<TestType>(1, &zero, &y, level);
      CHECK(y == 1);
      vcos<TestType>(1, &zero, &y, level);
      CHECK(y == 1);
      vsigmoid<TestType>(1, &zero, &y, level);
      CHECK(y == TestType(0.5));
    }
    const TestType one = 1;
    TestType y = 7;
    vlog<TestType>(1, &one, &y, level);
    CHECK(y == 0);
  }
}

TEMPLATE_TEST_CASE("a function is at its limit from where its exact value rounds to that", "[routines][vector_math]",
                   float, double) {
  std::vector<TestType> x;
  for (double v = 0; v < 60; v += 0x1p-7) x.push_back(static_cast<TestType>(v));
  for (const double v : {100.0, 1e3, 1e10, 1e30}) x.push_back(static_cast<TestType>(v));
  x.push_back(std::numeric_limits<TestType>::max());
  x.push_back(std::numeric_limits<TestType>::infinity());
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      const std::string name = f.name;
      if (name != "sigmoid" && name != "erf" && name != "tanh") continue;
      INFO(name << " at " << cpu_level_name(level));
      std::vector<TestType> y(x.size());
      f.ours(static_cast<std::int64_t>(x.size()), x.data(), y.data(), level);
      std::size_t not_at_limit = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool is_one = static_cast<TestType>(f.exact(static_cast<long double>(x[i]))) == 1;
        not_at_limit += is_one && y[i] != 1;
      }
      CHECK(not_at_limit == 0);
    }
  }
}

TEMPLATE_TEST_CASE("an element's bits depend on no other element, nor on its place", "[routines][vector_math]", float,
                   double) {
  using Limits = std::numeric_limits<TestType>;
  std::mt19937 generator(2);
  std::uniform_real_distribution<double> range(0.1, 20.0);
  for (CpuLevel level : levels_here()) {
    for (const auto& f : functions<TestType>()) {
      INFO(f.name << " at " << cpu_level_name(level));
      std::vector<TestType> x(603), together(x.size()), alone(x.size());
      for (TestType& v : x) v = static_cast<TestType>(range(generator));
      // Among the others, values that are computed in another way.
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

TEMPLATE_TEST_CASE("elementary functions of special values are those of the standard library",
                   "[routines][vector_math]", float, double) {
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

TEST_CASE("float tanh reaches 1 where the true value rounds to it, passes it nowhere, and stays there",
          "[routines][vector_math]") {
  // tanh x rounds to 1 from x = log(2^26 - 1) / 2 on.
  constexpr float rounds_to_one = 9.0109133f;
  for (CpuLevel level : levels_here()) {
    INFO(cpu_level_name(level));
    std::vector<float> x, y;
    for (int i = 0; i <= 200'000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
    for (const float large : {rounds_to_one, 100.0f, 1e30f, std::numeric_limits<float>::infinity()}) x.push_back(large);
    y.resize(x.size());
    vtanh(static_cast<std::int64_t>(x.size()), x.data(), y.data(), level);
    std::size_t outside = 0, below = 0, unsymmetric = 0;
    bool has_reached = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      outside += !(y[i] >= 0 && y[i] <= 1);
      // The rounding noise ends before the result stays 1.
      has_reached = has_reached || x[i] >= 8.95f;
      below += has_reached && y[i] != 1;
      const float negative = -x[i];
      float mirrored = 0;
      if (i % 97 == 0) vtanh(1, &negative, &mirrored, level), unsymmetric += mirrored != -y[i];
    }
    CHECK(outside == 0);
    CHECK(below == 0);
    CHECK(unsymmetric == 0);
    // Apart from rounding errors.
    for (std::size_t i = 1000; i < x.size(); i += 1000) CHECK(y[i] >= y[i - 1000] - 0x1p-21f);
  }
}

TEST_CASE("sin and cos keep their digits beside multiples of pi/2", "[routines][vector_math]") {
  // By mpmath, 60 digits: the doubles next to the multiples at which sin or cos is small.
  struct Row {
    double x, small;
    bool is_cosine;
  };
  for (CpuLevel level : levels_here()) {
    INFO(cpu_level_name(level));
    for (const Row& row :
         {Row{91553.86390724055, 2.260440600708132e-16, true}, Row{46066.74387591393, 1.3593070393188837e-16, true},
          Row{92133.48775182787, -2.7186140786377673e-16, false},
          Row{22743.560015663308, -1.8098738200135078e-16, true},
          Row{45487.120031326616, 3.6197476400270156e-16, false}, Row{90974.24006265323, -7.239495280054031e-16, false},
          Row{364.424747816416, 4.951845092706862e-18, false}, Row{1.5707963267948966, 6.123233995736766e-17, true},
          Row{3.141592653589793, 1.2246467991473532e-16, false}}) {
      double y = 0;
      (row.is_cosine ? vcos<double> : vsin<double>)(1, &row.x, &y, level);
      INFO(row.x << ": " << y << ", exactly " << row.small);
      CHECK(error_in_ulps(y, static_cast<long double>(row.small)) <= 2);
    }
    // All values, compared with the C library.
    double worst = 0;
    for (int n = 1; n <= 63'661; ++n) {
      const double x = n * 1.57079632679489661923;
      double y = 0;
      (n % 2 == 0 ? vsin<double> : vcos<double>)(1, &x, &y, level);
      worst = std::max(worst, error_in_ulps(y, static_cast<long double>(n % 2 == 0 ? std::sin(x) : std::cos(x))));
    }
    CHECK(worst <= 2);
  }
}

}  // namespace
}  // namespace dflow::cpu
