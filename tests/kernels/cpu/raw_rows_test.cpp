#include <dflow/kernels/cpu/raw/rows.hpp>

#include "raw_checks.hpp"

#include <limits>
#include <map>

namespace dflow::cpu {
namespace {

using namespace test;

template <class Index> std::vector<Index> random_indices(std::int64_t count, std::int64_t limit, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int64_t> pick(0, limit - 1);
  std::vector<Index> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(static_cast<Index>(pick(generator)));
  return indices;
}

TEMPLATE_TEST_CASE("gathered rows are those of the indices", "[raw][rows]", std::int32_t, std::int64_t) {
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

TEMPLATE_TEST_CASE("an index out of range is reported by position, gathers zeros and scatters nothing", "[raw][rows]",
                   std::int32_t, std::int64_t) {
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

TEST_CASE("rows of no elements are gathered, scattered and summed without memory", "[raw][rows]") {
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

TEST_CASE("indices far out of range are only reported", "[raw][rows]") {
  InlinePool serial;
  const std::vector<std::int64_t> indices(40, std::numeric_limits<std::int64_t>::min());
  const std::vector<std::uint8_t> from(41 * 3, 1);
  std::vector<std::uint8_t> to(40 * 3, 1);
  CHECK(gather_rows(serial, 1, 41, 40, 3, from.data(), indices.data(), to.data()) == 0);
  CHECK(to == std::vector<std::uint8_t>(40 * 3, 0));
}

template <class T> wide_t<T> apply(ScatterOp op, wide_t<T> a, wide_t<T> b) {
  switch (op) {
    case ScatterOp::assign:
      return b;
    case ScatterOp::add:
      return a + b;
    case ScatterOp::subtract:
      return a - b;
    case ScatterOp::multiply:
      return a * b;
    case ScatterOp::divide:
      if constexpr (std::is_integral_v<T>)
        return b == 0 ? a : wide(static_cast<T>(static_cast<T>(a) / static_cast<T>(b)));
      else
        return a / b;
    default:
      break;
  }
  if constexpr (is_complex<T>) {
    return a;
  } else {
    const bool less = static_cast<std::conditional_t<std::is_integral_v<T>, T, double>>(a) <
                      static_cast<std::conditional_t<std::is_integral_v<T>, T, double>>(b);
    return less == (op == ScatterOp::minimum) ? a : b;
  }
}

TEMPLATE_TEST_CASE("rows are scattered in the order of their indices, whatever the number of threads", "[raw][rows]",
                   float, double, Half, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t, std::complex<float>, std::complex<double>) {
  const std::int64_t limit = 37, count = 3000;
  for (std::int64_t row : {1, 7, 64}) {
    const auto indices = random_indices<std::int32_t>(count, limit, 3);
    const auto rows = random_values<TestType>(count * row, 4), before = random_values<TestType>(limit * row, 5);
    for (ScatterOp op : {ScatterOp::assign, ScatterOp::add, ScatterOp::subtract, ScatterOp::multiply, ScatterOp::divide,
                         ScatterOp::minimum, ScatterOp::maximum}) {
      if (is_complex<TestType> && op >= ScatterOp::minimum) continue;
      // Long products and quotients leave every range: these take each row once.
      const bool once = op == ScatterOp::multiply || op == ScatterOp::divide;
      const std::int64_t used = once ? limit : count;
      std::vector<std::int32_t> order(indices);
      for (std::int64_t i = 0; once && i < limit; ++i)
        order[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(limit - 1 - i);
      std::vector<wide_t<TestType>> expected;
      for (const TestType& v : before) expected.push_back(wide(v));
      for (std::int64_t i = 0; i < used; ++i)
        for (std::int64_t j = 0; j < row; ++j) {
          auto& to = expected[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * row + j)];
          to = apply<TestType>(op, to, wide(rows[static_cast<std::size_t>(i * row + j)]));
        }
      for (CpuLevel level : levels_here()) {
        std::vector<TestType> first;
        for (int threads = 1; threads <= 3; ++threads) {
          WorkStealingPool pool(threads);
          auto to = before;
          CHECK(scatter_rows(pool, op, limit, used, row, order.data(), rows.data(), to.data(), {.max_level = level}) ==
                -1);
          // Sums of 16-bit types round after each row.
          check_close(to, expected, 1500, "op " + std::to_string(static_cast<int>(op)));
          if (threads == 1) first = to;
          CHECK(same_bits(to, first));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("duplicate rows are summed under ascending distinct indices", "[raw][rows]", float, double, Half,
                   BFloat16) {
  WorkStealingPool threads(2);
  for (std::int64_t limit : {std::int64_t{1}, std::int64_t{40}, std::int64_t{5'000'000'000}}) {
    for (std::int64_t count : {0, 1, 500}) {
      const std::int64_t row = 6;
      const auto indices = random_indices<std::int64_t>(count, limit, 6);
      const auto rows = random_values<TestType>(count * row, 7);
      std::map<std::int64_t, std::vector<double>> sums;
      for (std::int64_t i = 0; i < count; ++i) {
        auto& sum = sums[indices[static_cast<std::size_t>(i)]];
        sum.resize(static_cast<std::size_t>(row));
        for (std::int64_t j = 0; j < row; ++j)
          sum[static_cast<std::size_t>(j)] += wide(rows[static_cast<std::size_t>(i * row + j)]);
      }
      std::vector<std::int64_t> unique(static_cast<std::size_t>(count));
      std::vector<TestType> summed(rows.size());
      const std::int64_t found =
          sum_duplicate_rows(threads, count, row, indices.data(), rows.data(), unique.data(), summed.data());
      REQUIRE(found == static_cast<std::int64_t>(sums.size()));
      std::vector<double> expected;
      std::vector<std::int64_t> keys;
      for (const auto& [key, sum] : sums) {
        keys.push_back(key);
        expected.insert(expected.end(), sum.begin(), sum.end());
      }
      unique.resize(keys.size());
      summed.resize(expected.size());
      CHECK(unique == keys);
      check_close(summed, expected, 2000, "sums");
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
