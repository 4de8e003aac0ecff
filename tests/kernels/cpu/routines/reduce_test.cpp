#include <dflow/kernels/cpu/routines/math/reduce.hpp>

#include "checks.hpp"

#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

const std::vector<ReduceShape>& reduce_shapes() {
  static const std::vector<ReduceShape> all = {
      {1, 1, 1},    {3, 5, 1},   {7, 100, 1},   {2, 5000, 1}, {1, 200001, 1}, {4, 3, 2},
      {1, 1000, 3}, {3, 70, 10}, {1, 130, 300}, {2, 9, 1030}, {1, 4099, 65},  {5, 0, 1},
      {2, 0, 3},    {0, 4, 1},   {3, 4, 0},     {300, 4, 7},  {1, 600, 257},
  };
  return all;
}

template <class T, class F>
std::vector<wide_t<T>> reference(const ReduceShape& s, const std::vector<T>& x, wide_t<T> identity, F&& combine) {
  std::vector<wide_t<T>> y(static_cast<std::size_t>(s.outer * s.inner), identity);
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t r = 0; r < s.reduce; ++r)
      for (std::int64_t i = 0; i < s.inner; ++i) {
        auto& to = y[static_cast<std::size_t>(o * s.inner + i)];
        to = combine(to, wide(x[static_cast<std::size_t>((o * s.reduce + r) * s.inner + i)]));
      }
  return y;
}

std::string reduce_name(const ReduceShape& s) {
  return std::to_string(s.outer) + "x" + std::to_string(s.reduce) + "x" + std::to_string(s.inner);
}

template <class T>
void check_sums(ThreadPool& pool, const CpuOptions& options) {
  for (const ReduceShape& s : reduce_shapes()) {
    const auto x = random_values<T>(s.outer * s.reduce * s.inner, 1);
    std::vector<T> y(static_cast<std::size_t>(s.outer * s.inner));
    // Far below the error of one accumulator of the computing type, and below the error of any 16-bit accumulator.
    double scale = 16 + 6 * std::sqrt(static_cast<double>(s.reduce));
    // The reference is no more exact than this.
    if (unit_roundoff<T>() == unit_roundoff<double>()) scale += static_cast<double>(s.reduce);
    const auto sums = reference<T>(s, x, {}, [](auto a, auto b) { return a + b; });
    reduce_sum(pool, s, x.data(), y.data(), options);
    check_close(y, sums, scale, "sum " + reduce_name(s) + " " + test::name_of(options));
    reduce_prod(pool, s, x.data(), y.data(), options);
    check_close(y, reference<T>(s, x, wide_t<T>(1), [](auto a, auto b) { return a * b; }), 16,
                "product " + reduce_name(s));
    if constexpr (!std::is_integral_v<T>) {
      auto means = sums;
      for (auto& m : means) m /= static_cast<double>(s.reduce);
      reduce_mean(pool, s, x.data(), y.data(), options);
      check_close(y, means, 16, "mean " + reduce_name(s));
    }
  }
}

TEMPLATE_TEST_CASE("sums, means and products equal naive ones in double", "[routines][reduce]", float, double, Half,
                   BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                   std::uint32_t, std::uint64_t, std::complex<float>, std::complex<double>) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) check_sums<TestType>(threads, {.max_level = level});
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return T(-std::numeric_limits<float>::infinity());
}
template <class T>
T highest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::max();
  else
    return T(std::numeric_limits<float>::infinity());
}

template <class T>
void check_order(ThreadPool& pool, const CpuOptions& options) {
  for (const ReduceShape& s : reduce_shapes()) {
    INFO(reduce_name(s) << " " << test::name_of(options));
    const auto x = random_values<T>(s.outer * s.reduce * s.inner, 2);
    const auto size = static_cast<std::size_t>(s.outer * s.inner);
    std::vector<T> largest(size), smallest(size), expected_largest(size, lowest<T>()),
        expected_smallest(size, highest<T>());
    std::vector<std::int32_t> first_largest(size), expected_first_largest(size, 0);
    std::vector<std::int64_t> first_smallest(size), expected_first_smallest(size, 0);
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t r = 0; r < s.reduce; ++r)
        for (std::int64_t i = 0; i < s.inner; ++i) {
          const auto at = static_cast<std::size_t>(o * s.inner + i);
          const T value = x[static_cast<std::size_t>((o * s.reduce + r) * s.inner + i)];
          if (value > expected_largest[at])
            expected_largest[at] = value, expected_first_largest[at] = static_cast<std::int32_t>(r);
          if (value < expected_smallest[at]) expected_smallest[at] = value, expected_first_smallest[at] = r;
        }
    reduce_max(pool, s, x.data(), largest.data(), options);
    reduce_min(pool, s, x.data(), smallest.data(), options);
    argmax(pool, s, x.data(), first_largest.data(), options);
    argmin(pool, s, x.data(), first_smallest.data(), options);
    CHECK(largest == expected_largest);
    CHECK(smallest == expected_smallest);
    CHECK(first_largest == expected_first_largest);
    CHECK(first_smallest == expected_first_smallest);
  }
}

TEMPLATE_TEST_CASE("maxima, minima and their first positions are the naive ones", "[routines][reduce]", float, double,
                   Half, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                   std::uint32_t, std::uint64_t) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) check_order<TestType>(threads, {.max_level = level});
}

TEMPLATE_TEST_CASE("a NaN is the maximum and the minimum, but its position is passed over", "[routines][reduce]", float,
                   double, Half, BFloat16) {
  InlinePool serial;
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (std::int64_t at : {0, 1, 37, 199}) {
      for (std::int64_t inner : {std::int64_t{1}, std::int64_t{5}}) {
        auto x = random_values<TestType>(200 * inner, 3);
        x[static_cast<std::size_t>(at * inner)] = TestType(std::numeric_limits<float>::quiet_NaN());
        x[static_cast<std::size_t>(70 * inner)] = TestType(5.0f);
        std::vector<TestType> y(static_cast<std::size_t>(inner));
        std::vector<std::int64_t> position(y.size());
        reduce_max(serial, {1, 200, inner}, x.data(), y.data(), options);
        CHECK(std::isnan(wide(y[0])));
        reduce_min(serial, {1, 200, inner}, x.data(), y.data(), options);
        CHECK(std::isnan(wide(y[0])));
        argmax(serial, {1, 200, inner}, x.data(), position.data(), options);
        CHECK(position[0] == 70);
      }
    }
  }
}

constexpr std::int64_t ten_million = 10'000'000;

/// `pattern` repeated to ten million elements; all of them are exact in T.
template <class T>
std::vector<T> repeated(const std::vector<double>& pattern) {
  std::vector<T> period, x(static_cast<std::size_t>(ten_million));
  for (const double value : pattern) {
    period.push_back(static_cast<T>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value)));
    REQUIRE(wide(period.back()) == value);
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = period[i % period.size()];
  return x;
}

struct ExactReduction {
  double whole;
  std::vector<double> columns;
};

/// Reduces `x` as a vector and as four columns. The error may be `scale` roundings of the computing type relative to
/// `terms(expected)`.
template <class T, class Reduce, class Terms>
void check_ten_million(const std::vector<T>& x, const ExactReduction& exact, double scale, const char* what,
                       Reduce&& reduce, Terms&& terms) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    const std::string where = std::string(what) + " at " + std::string(cpu_level_name(level));
    std::vector<T> y(1), columns(4);
    reduce(threads, ReduceShape{1, ten_million, 1}, x.data(), y.data(), options);
    check_terms(
        y, {exact.whole}, [&](std::size_t) { return terms(exact.whole); }, scale, where);
    reduce(threads, ReduceShape{1, ten_million / 4, 4}, x.data(), columns.data(), options);
    check_terms(
        columns, exact.columns, [&](std::size_t i) { return terms(exact.columns[i]); }, scale, where + ", columns");
  }
}

// Patterns of five elements: each of four columns has as many of every one of them.
TEMPLATE_TEST_CASE("sums and means of ten million elements are exact up to the last rounding",
                   "[routines][reduce][long]", float, double, Half, BFloat16) {
  const auto sum = [](auto&&... args) { reduce_sum<TestType>(args...); };
  const auto mean = [](auto&&... args) { reduce_mean<TestType>(args...); };
  const auto itself = [](double expected) { return expected; };
  // On average 2^-10; a sum in 16 bits would stay at 4 or less.
  const double n = ten_million, each = 0x1p-10;
  const auto small = repeated<TestType>({0x1p-10, 0x1p-11, 0x1p-9, 0x1p-10, 0x1p-11});
  check_ten_million(small, {n * each, std::vector<double>(4, n / 4 * each)}, 4, "sum of small elements", sum, itself);
  check_ten_million(small, {each, std::vector<double>(4, each)}, 4, "mean of small elements", mean, itself);
  // The sum of each pattern is small beside the elements, and the whole sum is more than Half holds.
  const auto mixed = repeated<TestType>({40, -56, 72, -88, 32.5});
  check_ten_million(mixed, {0.1, std::vector<double>(4, 0.1)}, 4, "mean of elements that cancel", mean,
                    [](double) { return 57.7; });
}

TEMPLATE_TEST_CASE("products of ten million elements are exact up to some roundings", "[routines][reduce][long]", float,
                   double, Half, BFloat16) {
  const auto product = [](auto&&... args) { reduce_prod<TestType>(args...); };
  const auto itself = [](double expected) { return expected; };
  auto powers = repeated<TestType>({2, 0.5, -4, 0.25, -1});
  for (std::size_t i = 0; i < 4; ++i) powers[i] = TestType(static_cast<float>(8 * wide(powers[i])));
  check_ten_million(powers, {4096, std::vector<double>(4, 8)}, 0, "product of powers of 2", product, itself);
  // A thousand factors on either side of 1, among ones: each rounds.
  auto near_one = repeated<TestType>({1});
  for (std::size_t i = 0; i < 1000; ++i) {
    near_one[5000 * i] = TestType(1 + 0x1p-7f);
    near_one[5000 * i + 2499] = TestType(1 - 0x1p-7f);
  }
  check_ten_million(near_one,
                    {std::pow(1 - 0x1p-14, 1000), {std::pow(1 + 0x1p-7, 1000), 1, 1, std::pow(1 - 0x1p-7, 1000)}}, 200,
                    "product of factors near 1", product, itself);
}

TEST_CASE("a sum of millions of floats stays close to the sum in double", "[routines][reduce]") {
  WorkStealingPool threads(2);
  std::vector<float> x(5'000'001, 0.1f);
  for (CpuLevel level : levels_here()) {
    float y = 0;
    reduce_sum(threads, {1, static_cast<std::int64_t>(x.size()), 1}, x.data(), &y, {.max_level = level});
    CHECK(std::fabs(y - 5'000'001 * static_cast<double>(0.1f)) < 0.1);
    std::vector<float> columns(3);
    reduce_sum(threads, {1, static_cast<std::int64_t>(x.size()) / 3, 3}, x.data(), columns.data(),
               {.max_level = level});
    CHECK(std::fabs(columns[1] - 1'666'667 * static_cast<double>(0.1f)) < 0.1);
    CHECK(std::fabs(sum_of_squares(threads, static_cast<std::int64_t>(x.size()), x.data(), {.max_level = level}) -
                    50'000.01) < 0.02);
  }
}

TEST_CASE("the bits of a sum do not depend on the number of threads", "[routines][reduce]") {
  for (const ReduceShape& s : {ReduceShape{1, 3'000'000, 1}, ReduceShape{1, 30'000, 100}, ReduceShape{3, 500, 1000}}) {
    const auto x = random_values<float>(s.outer * s.reduce * s.inner, 4);
    std::vector<float> first;
    for (int count = 1; count <= 4; ++count) {
      WorkStealingPool threads(count);
      std::vector<float> y(static_cast<std::size_t>(s.outer * s.inner));
      reduce_sum(threads, s, x.data(), y.data());
      if (count == 1) first = y;
      CHECK(same_bits(first, y));
    }
  }
}

TEST_CASE("all and any of booleans, also of none", "[routines][reduce]") {
  InlinePool serial;
  const bool x[] = {true, true, false, true, false, false};
  bool y[3];
  reduce_all(serial, {3, 2, 1}, x, y);
  CHECK((y[0] && !y[1] && !y[2]));
  reduce_any(serial, {3, 2, 1}, x, y);
  CHECK((y[0] && y[1] && !y[2]));
  reduce_all(serial, {1, 2, 3}, x, y);
  CHECK((y[0] && !y[1] && !y[2]));
  reduce_all(serial, {2, 0, 1}, x, y);
  CHECK((y[0] && y[1]));
  reduce_any(serial, {2, 0, 1}, x, y);
  CHECK((!y[0] && !y[1]));
}

/// Elements of the whole range of T, or elements small enough that the sum of `count` of them fits in 64 bits.
template <class T>
std::vector<T> large_integers(std::int64_t n, std::int64_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> values(static_cast<std::size_t>(n));
  const auto divisor = static_cast<T>(sizeof(T) == 8 && count > 0 ? count : 1);
  for (T& value : values) value = static_cast<T>(static_cast<T>(generator()) / divisor);
  return values;
}

template <class T>
void check_integer_means(ThreadPool& pool, const CpuOptions& options) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (const ReduceShape& s : reduce_shapes()) {
    INFO(reduce_name(s) << " " << test::name_of(options));
    const auto x = large_integers<T>(s.outer * s.reduce * s.inner, s.reduce, 5);
    std::vector<T> y(static_cast<std::size_t>(s.outer * s.inner), T(1)), expected(y.size());
    std::vector<Wide> sums(y.size(), 0);
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t r = 0; r < s.reduce; ++r)
        for (std::int64_t i = 0; i < s.inner; ++i) {
          sums[static_cast<std::size_t>(o * s.inner + i)] +=
              x[static_cast<std::size_t>((o * s.reduce + r) * s.inner + i)];
        }
    for (std::size_t i = 0; i < y.size(); ++i) {
      expected[i] = static_cast<T>(s.reduce == 0 ? 0 : sums[i] / static_cast<Wide>(s.reduce));
    }
    reduce_mean(pool, s, x.data(), y.data(), options);
    CHECK(y == expected);
    if (sizeof(T) == 8 || s.reduce == 0) continue;
    for (const T extreme : {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()}) {
      const std::vector<T> same(x.size(), extreme);
      reduce_mean(pool, s, same.data(), y.data(), options);
      CHECK(y == std::vector<T>(y.size(), extreme));
    }
  }
}

// The expected values are exact quotients of exact sums.
TEMPLATE_TEST_CASE("a mean of integers is right where their sum does not fit in the type", "[routines][reduce]",
                   std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) check_integer_means<TestType>(threads, {.max_level = level});
}

TEST_CASE("integer means truncate toward zero", "[routines][reduce]") {
  InlinePool serial;
  const std::int32_t x[] = {-3, -4, 3, 4};
  std::int32_t y[2];
  reduce_mean(serial, {2, 2, 1}, x, y);
  CHECK(y[0] == -3);
  CHECK(y[1] == 3);
}

}  // namespace
}  // namespace dflow::cpu
