#include <dflow/kernels/cpu/routines/array/rows.hpp>

#include "checks.hpp"

#include <limits>
#include <map>

namespace dflow::cpu {
namespace {

using namespace test;

template <class Index>
std::vector<Index> random_indices(std::int64_t count, std::int64_t limit, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int64_t> pick(0, limit - 1);
  std::vector<Index> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(static_cast<Index>(pick(generator)));
  return indices;
}

TEMPLATE_TEST_CASE("gathered rows are those of the indices", "[routines][rows]", std::int32_t, std::int64_t) {
  WorkStealingPool threads(2);
  for (std::int64_t row : {0, 1, 2, 3, 16, 64, 100}) {
    for (std::int64_t outer : {1, 3}) {
      const std::int64_t limit = 50, count = 700;
      const auto from = random_values<float>(outer * limit * row, 1);
      const auto indices = random_indices<TestType>(count, limit, 2);
      std::vector<float> to(static_cast<std::size_t>(outer * count * row)), expected(to.size());
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t j = 0; j < row; ++j)
            expected[static_cast<std::size_t>((o * count + i) * row + j)] =
                from[static_cast<std::size_t>((o * limit + indices[static_cast<std::size_t>(i)]) * row + j)];
      CHECK(gather_rows(threads, outer, limit, count, static_cast<std::size_t>(row) * sizeof(float), from.data(),
                        indices.data(), to.data()) == -1);
      CHECK(to == expected);
    }
  }
}

TEMPLATE_TEST_CASE("an index out of range is reported by position, gathers zeros and scatters nothing",
                   "[routines][rows]", std::int32_t, std::int64_t) {
  InlinePool serial;
  std::vector<TestType> indices(600, 1);
  indices[400] = -1;
  indices[401] = 5;
  CHECK(find_bad_index<TestType>(600, indices.data(), 5) == 400);
  CHECK(find_bad_index<TestType>(400, indices.data(), 5) == -1);
  CHECK(find_bad_index<TestType>(0, indices.data(), 0) == -1);
  CHECK(find_bad_index<TestType>(1, indices.data(), 0) == 0);
  std::vector<float> from(10, 1.0f), to(1200, 7.0f), before(from);
  CHECK(gather_rows(serial, 1, 5, 600, 2 * sizeof(float), from.data(), indices.data(), to.data()) == 400);
  CHECK(to[800] == 0.0f);
  CHECK(to[803] == 0.0f);
  CHECK(to[804] == 1.0f);
  CHECK(scatter_rows(serial, ScatterOp::add, 5, 600, 2, indices.data(), to.data(), from.data()) == 400);
  CHECK(from == before);
}

TEST_CASE("rows of no elements are gathered, scattered and summed without memory", "[routines][rows]") {
  InlinePool serial;
  const std::vector<std::int32_t> indices = {1, 1, 0};
  const float* none = nullptr;
  float* nowhere = nullptr;
  std::vector<std::int32_t> unique(3);
  CHECK(gather_rows(serial, 1, 2, 3, 0, none, indices.data(), nowhere) == -1);
  CHECK(scatter_rows(serial, ScatterOp::add, 2, 3, 0, indices.data(), none, nowhere) == -1);
  CHECK(sum_duplicate_rows(serial, 3, 0, indices.data(), none, unique.data(), nowhere) == 2);
  CHECK(unique[0] == 0);
  CHECK(unique[1] == 1);
}

TEST_CASE("indices far out of range are only reported", "[routines][rows]") {
  InlinePool serial;
  const std::vector<std::int64_t> indices(40, std::numeric_limits<std::int64_t>::min());
  const std::vector<std::uint8_t> from(41 * 3, 1);
  std::vector<std::uint8_t> to(40 * 3, 1);
  CHECK(gather_rows(serial, 1, 41, 40, 3, from.data(), indices.data(), to.data()) == 0);
  CHECK(to == std::vector<std::uint8_t>(40 * 3, 0));
  // An index with a row that would be the last bytes of the address space.
  const std::vector<float> table(16, 1.0f);
  std::vector<float> gathered(16);
  std::vector<std::int64_t> last(16, 0);
  last[12] = -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(table.data()) / sizeof(float)) - 2;
  CHECK(gather_rows(serial, 1, 16, 16, sizeof(float), table.data(), last.data(), gathered.data()) == 12);
  CHECK(gathered[12] == 0.0f);
}

/// The type in which rows are added up: float for 16-bit floats.
template <class T>
using folded_t = std::conditional_t<std::is_integral_v<T>, T, computing_t<T>>;

/// The effect of one row, by the definition.
template <class T>
T apply(ScatterOp op, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, wide_t<T>, computing_t<T>>;
  const auto rounded = [&](auto&& f) { return static_cast<T>(f(static_cast<Wide>(a), static_cast<Wide>(b))); };
  switch (op) {
    case ScatterOp::assign:
      return b;
    case ScatterOp::add:
      return rounded([](Wide x, Wide y) { return x + y; });
    case ScatterOp::subtract:
      return rounded([](Wide x, Wide y) { return x - y; });
    case ScatterOp::multiply:
      return rounded([](Wide x, Wide y) { return x * y; });
    case ScatterOp::divide:
      if constexpr (std::is_integral_v<T>) {
        return b == 0 ? a : static_cast<T>(a / b);
      } else {
        return rounded([](Wide x, Wide y) { return x / y; });
      }
    default:
      break;
  }
  if constexpr (is_complex<T>) {
    return a;
  } else {
    return (a < b) == (op == ScatterOp::minimum) ? a : b;
  }
}

TEMPLATE_TEST_CASE("rows are scattered in the order of their indices, whatever the number of threads",
                   "[routines][rows]", float, double, Half, BFloat16, std::int8_t, std::int16_t, std::int32_t,
                   std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::complex<float>,
                   std::complex<double>) {
  const std::int64_t limit = 37, count = 3000;
  for (std::int64_t row : {1, 7, 64}) {
    const auto indices = random_indices<std::int32_t>(count, limit, 3);
    const auto rows = random_values<TestType>(count * row, 4), before = random_values<TestType>(limit * row, 5);
    for (ScatterOp op : {ScatterOp::assign, ScatterOp::add, ScatterOp::subtract, ScatterOp::multiply, ScatterOp::divide,
                         ScatterOp::minimum, ScatterOp::maximum}) {
      if (is_complex<TestType> && op >= ScatterOp::minimum) continue;
      // Long products and quotients leave every range: the two ops take each row once.
      const bool once = op == ScatterOp::multiply || op == ScatterOp::divide;
      const std::int64_t used = once ? limit : count;
      std::vector<std::int32_t> order(indices);
      for (std::int64_t i = 0; once && i < limit; ++i)
        order[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(limit - 1 - i);
      std::vector<folded_t<TestType>> folded;
      for (const TestType x : before) folded.push_back(static_cast<folded_t<TestType>>(x));
      for (std::int64_t i = 0; i < used; ++i)
        for (std::int64_t j = 0; j < row; ++j) {
          auto& to = folded[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * row + j)];
          to = apply(op, to, static_cast<folded_t<TestType>>(rows[static_cast<std::size_t>(i * row + j)]));
        }
      std::vector<TestType> expected;
      for (const auto x : folded) expected.push_back(static_cast<TestType>(x));
      for (CpuLevel level : levels_here()) {
        std::vector<TestType> first;
        for (int threads = 1; threads <= 3; ++threads) {
          WorkStealingPool pool(threads);
          auto to = before;
          CHECK(scatter_rows(pool, op, limit, used, row, order.data(), rows.data(), to.data(), {.max_level = level}) ==
                -1);
          INFO("op " << static_cast<int>(op) << " at " << cpu_level_name(level));
          if (is_complex<TestType> && once) {
            // The roundings of a complex product have no fixed order.
            check_relative(to, wide_of(expected), 16, "product or quotient");
          } else {
            CHECK(to == expected);
          }
          if (threads == 1) first = to;
          CHECK(same_bits(to, first));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("duplicate rows are summed under ascending distinct indices", "[routines][rows]", float, double,
                   Half, BFloat16) {
  WorkStealingPool threads(2);
  for (std::int64_t limit : {std::int64_t{1}, std::int64_t{40}, std::int64_t{5'000'000'000}}) {
    for (std::int64_t count : {0, 1, 500}) {
      const std::int64_t row = 6;
      const auto indices = random_indices<std::int64_t>(count, limit, 6);
      const auto rows = random_values<TestType>(count * row, 7);
      // Added in the order of their positions, in the computing type, and rounded once.
      std::map<std::int64_t, std::vector<computing_t<TestType>>> sums;
      for (std::int64_t i = 0; i < count; ++i) {
        auto& sum = sums[indices[static_cast<std::size_t>(i)]];
        sum.resize(static_cast<std::size_t>(row));
        for (std::int64_t j = 0; j < row; ++j) {
          sum[static_cast<std::size_t>(j)] +=
              static_cast<computing_t<TestType>>(rows[static_cast<std::size_t>(i * row + j)]);
        }
      }
      std::vector<std::int64_t> unique(static_cast<std::size_t>(count));
      std::vector<TestType> summed(rows.size());
      const std::int64_t found =
          sum_duplicate_rows(threads, count, row, indices.data(), rows.data(), unique.data(), summed.data());
      REQUIRE(found == static_cast<std::int64_t>(sums.size()));
      std::vector<TestType> expected;
      std::vector<std::int64_t> keys;
      for (const auto& [key, sum] : sums) {
        keys.push_back(key);
        for (const auto value : sum) expected.push_back(static_cast<TestType>(value));
      }
      unique.resize(keys.size());
      summed.resize(expected.size());
      CHECK(unique == keys);
      CHECK(summed == expected);
    }
  }
}

TEST_CASE("rows of negative indices are left out where that is asked for", "[routines][rows]") {
  const std::vector<std::int32_t> indices{1, -1, 0, -100, 1}, large{-3, 2, 0};
  const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (int threads = 1; threads <= 3; ++threads) {
    WorkStealingPool pool(threads, {.min_split_ns = 0});
    std::vector<float> to{100, 200, 300, 400};
    CHECK(scatter_rows(pool, ScatterOp::add, 2, 5, 2, indices.data(), rows.data(), to.data(), {},
                       {.drop_negative = true}) == -1);
    CHECK(to == std::vector<float>{105, 206, 310, 412});
    CHECK(scatter_rows(pool, ScatterOp::add, 2, 3, 2, large.data(), rows.data(), to.data(), {},
                       {.drop_negative = true}) == 1);
    CHECK(to == std::vector<float>{105, 206, 310, 412});
  }
}

TEST_CASE("one row is applied at every index where that is asked for", "[routines][rows]") {
  const std::vector<std::int32_t> indices{1, 0, 1, -1};
  for (int threads = 1; threads <= 3; ++threads) {
    WorkStealingPool pool(threads, {.min_split_ns = 0});
    const std::vector<float> row{2, 3};
    std::vector<float> to{10, 20, 30, 40};
    CHECK(scatter_rows(pool, ScatterOp::multiply, 2, 3, 2, indices.data(), row.data(), to.data(), {},
                       {.repeats = true}) == -1);
    CHECK(to == std::vector<float>{20, 60, 120, 360});
    const std::vector<Half> half_row{Half(2.0f), Half(3.0f)};
    std::vector<Half> halves{Half(1.0f), Half(2.0f), Half(3.0f), Half(4.0f)};
    CHECK(scatter_rows(pool, ScatterOp::add, 2, 4, 2, indices.data(), half_row.data(), halves.data(), {},
                       {.drop_negative = true, .repeats = true}) == -1);
    CHECK(halves == std::vector<Half>{Half(3.0f), Half(5.0f), Half(7.0f), Half(10.0f)});
  }
}

TEMPLATE_TEST_CASE("scattered rows of 16 bits are rounded once", "[routines][rows]", Half, BFloat16) {
  const std::int64_t count = 4000, row = 1000;
  const std::vector<std::int32_t> indices(static_cast<std::size_t>(count), 1);
  const std::vector<TestType> ones(static_cast<std::size_t>(row), TestType(1.0f));
  WorkStealingPool pool(2);
  // Added one after the other, ones stop at 2048 or 256.
  std::vector<TestType> to(static_cast<std::size_t>(2 * row), TestType(96.0f));
  CHECK(scatter_rows(pool, ScatterOp::add, 2, count, row, indices.data(), ones.data(), to.data(), {},
                     {.repeats = true}) == -1);
  std::vector<TestType> expected(static_cast<std::size_t>(row), TestType(96.0f));
  expected.resize(static_cast<std::size_t>(2 * row), TestType(4096.0f));
  CHECK(to == expected);
  CHECK(scatter_rows(pool, ScatterOp::subtract, 2, count, row, indices.data(), ones.data(), to.data(), {},
                     {.repeats = true}) == -1);
  CHECK(to == std::vector<TestType>(static_cast<std::size_t>(2 * row), TestType(96.0f)));
}

TEST_CASE("complex quotients have the range of their parts", "[routines][rows]") {
  InlinePool serial;
  const std::vector<std::int32_t> indices{0, 1};
  const std::vector<std::complex<float>> by{{0.0f, 1e30f}, {3e-30f, 4e-30f}};
  for (CpuLevel level : levels_here()) {
    std::vector<std::complex<float>> to{{2e30f, 0.0f}, {3e-30f, 4e-30f}};
    CHECK(scatter_rows(serial, ScatterOp::divide, 2, 2, 1, indices.data(), by.data(), to.data(),
                       {.max_level = level}) == -1);
    CHECK(std::abs(to[0] - std::complex<float>(0, -2)) < 1e-6f);
    CHECK(std::abs(to[1] - std::complex<float>(1, 0)) < 1e-6f);
  }
}

TEST_CASE("the first of two zeros is the smaller and the larger, and a NaN stays", "[routines][rows]") {
  InlinePool serial;
  const float nan = std::nanf("");
  const std::vector<std::int32_t> indices{0};
  const std::vector<float> before{0.0f, -0.0f, nan, 1.0f}, row{-0.0f, 0.0f, 1.0f, nan};
  for (ScatterOp op : {ScatterOp::minimum, ScatterOp::maximum}) {
    for (CpuLevel level : levels_here()) {
      std::vector<float> to = before;
      CHECK(scatter_rows(serial, op, 1, 1, 4, indices.data(), row.data(), to.data(), {.max_level = level}) == -1);
      CHECK_FALSE(std::signbit(to[0]));
      CHECK(std::signbit(to[1]));
      CHECK(std::isnan(to[2]));
      CHECK(std::isnan(to[3]));
    }
  }
}

TEST_CASE("duplicate rows of 16 bits are rounded once", "[routines][rows]") {
  InlinePool serial;
  const std::vector<std::int32_t> indices(1001, 7);
  std::vector<BFloat16> rows(1001, BFloat16(1.0f)), summed(1001);
  std::vector<std::int32_t> unique(1001);
  // Added one after the other, ones stop at 256.
  CHECK(sum_duplicate_rows(serial, 1001, 1, indices.data(), rows.data(), unique.data(), summed.data()) == 1);
  CHECK(static_cast<float>(summed[0]) == 1000.0f);
}

}  // namespace
}  // namespace dflow::cpu
