#include <dflow/core/tensor.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>

#include "checks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dflow::cpu {
namespace {

using namespace test;

struct Transposition {
  std::vector<std::int64_t> dims;
  std::vector<std::int32_t> permutation;
};

template <std::size_t bytes>
struct Element {
  unsigned char memory[bytes];
};

template <std::size_t bytes>
std::vector<Element<bytes>> numbered(std::int64_t n) {
  std::vector<Element<bytes>> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t words[] = {i, ~i};
    std::memcpy(x[i].memory, words, bytes);
  }
  return x;
}

template <std::size_t bytes>
void check_transpose(ThreadPool& pool, const Transposition& t, CpuLevel level) {
  const std::int64_t count = std::accumulate(t.dims.begin(), t.dims.end(), std::int64_t{1}, std::multiplies<>());
  const auto x = numbered<bytes>(count);
  std::vector<Element<bytes>> y(x.size()), expected(x.size());
  std::vector<std::int64_t> strides(t.dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = t.dims.size(); i-- > 0;) strides[i] = stride, stride *= t.dims[i];
  for (std::int64_t o = 0; o < count; ++o) {
    std::int64_t rest = o, from = 0;
    for (std::size_t i = t.dims.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(t.permutation[i]);
      from += rest % t.dims[axis] * strides[axis];
      rest /= t.dims[axis];
    }
    expected[static_cast<std::size_t>(o)] = x[static_cast<std::size_t>(from)];
  }
  transpose(pool, bytes, t.dims, t.permutation, x.data(), y.data(), {.max_level = level});
  INFO(bytes << " bytes, rank " << t.dims.size() << ", " << count << " elements");
  CHECK((count == 0 || std::memcmp(y.data(), expected.data(), y.size() * bytes) == 0));
  // Only a result that begins a cache line may be written past the caches.
  Tensor<std::uint8_t> aligned({count * static_cast<std::int64_t>(bytes)});
  transpose(pool, bytes, t.dims, t.permutation, x.data(), aligned.data(), {.max_level = level});
  CHECK((count == 0 || std::memcmp(aligned.data(), expected.data(), aligned.span().size()) == 0));
}

TEST_CASE("runs of small elements are moved as one piece wherever they lie", "[routines][transpose]") {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    for (std::int64_t run : {2, 4}) {
      for (std::int64_t offset : {0, 1, 3}) {
        // [rows, columns, run], or its transpose [columns, rows, run], out of larger arrays. Their rows are multiples
        // of the run, and they begin at an odd element.
        for (std::int64_t rows : {3, 40}) {
          for (bool transposed : {false, true}) {
            const std::int64_t columns = 37, step = transposed ? 1 : 2, width = (columns + 2) * step * run;
            const auto x = random_values<float>(rows * width + offset, 1);
            std::vector<float> y(static_cast<std::size_t>((rows + 2) * (columns + 2) * run + offset), -1.0f),
                expected(y);
            const std::vector<std::int64_t> dims = {rows, columns, run}, from = {width, step * run, 1};
            const std::vector<std::int64_t> to = transposed ? std::vector<std::int64_t>{run, (rows + 2) * run, 1}
                                                            : std::vector<std::int64_t>{(columns + 2) * run, run, 1};
            for (std::int64_t r = 0; r < rows; ++r) {
              for (std::int64_t c = 0; c < columns; ++c) {
                for (std::int64_t i = 0; i < run; ++i) {
                  expected[static_cast<std::size_t>(offset + r * to[0] + c * to[1] + i)] =
                      x[static_cast<std::size_t>(offset + r * from[0] + c * from[1] + i)];
                }
              }
            }
            strided_copy(threads, sizeof(float), dims, x.data() + offset, from, y.data() + offset, to,
                         {.max_level = level});
            INFO("run " << run << ", offset " << offset << ", rows " << rows << ", transposed " << transposed);
            CHECK(y == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("a transpose moves every element to its place, for each size of element", "[routines][transpose]") {
  WorkStealingPool threads(2);
  const std::vector<Transposition> cases = {
      {{}, {}},
      {{7}, {0}},
      {{33, 70}, {1, 0}},
      {{128, 256}, {1, 0}},
      {{1, 50}, {1, 0}},
      {{3, 17, 35}, {0, 2, 1}},
      {{3, 17, 35}, {2, 1, 0}},
      {{5, 6, 7}, {1, 0, 2}},
      {{2, 9, 10, 16}, {0, 3, 1, 2}},
      {{2, 16, 9, 10}, {0, 2, 3, 1}},
      {{4, 3, 5, 2}, {3, 1, 0, 2}},
      {{2, 3, 2, 3, 2, 3, 2, 2}, {7, 5, 3, 1, 0, 2, 4, 6}},
      {{0, 5}, {1, 0}},
      {{40, 30, 2}, {1, 0, 2}},
      {{40, 30, 4}, {1, 0, 2}},
      {{100, 100}, {0, 1}},
  };
  for (CpuLevel level : levels_here()) {
    for (const Transposition& t : cases) {
      check_transpose<1>(threads, t, level);
      check_transpose<2>(threads, t, level);
      check_transpose<4>(threads, t, level);
      check_transpose<8>(threads, t, level);
      check_transpose<16>(threads, t, level);
    }
  }
}

/// More than `streamed_bytes`, with rows of the result that are whole cache lines. The last square may be cut either
/// way.
template <std::size_t bytes>
void check_large_transpose(ThreadPool& pool, CpuLevel level) {
  for (const std::int64_t rows : {1088, 1072}) {
    const std::int64_t columns = (std::int64_t{4} << 20) / (rows * static_cast<std::int64_t>(bytes)) + 7;
    check_transpose<bytes>(pool, {{rows, columns}, {1, 0}}, level);
  }
}

TEST_CASE("a transpose that goes past the caches moves every element to its place", "[routines][transpose][long]") {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    check_large_transpose<1>(threads, level);
    check_large_transpose<2>(threads, level);
    check_large_transpose<4>(threads, level);
    check_large_transpose<8>(threads, level);
    check_large_transpose<16>(threads, level);
  }
}

TEST_CASE("a strided copy takes slices, reversals, broadcasts and concatenations", "[routines][transpose]") {
  WorkStealingPool threads(2);
  const auto x = random_values<float>(6 * 8 * 10, 1);
  struct Copy {
    std::vector<std::int64_t> dims, from_strides, to_strides;
    std::int64_t from_offset;
  };
  const std::vector<Copy> copies = {
      {{3, 4, 5}, {80, 10, 1}, {20, 5, 1}, 80 + 20 + 3},  // slice
      {{3, 4, 5}, {160, 20, 2}, {20, 5, 1}, 0},           // steps of two
      {{6, 8, 10}, {80, -10, 1}, {80, 10, 1}, 70},        // reversed rows
      {{6, 8, 10}, {80, 10, -1}, {80, 10, 1}, 9},         // reversed columns
      {{6, 7, 10}, {10, 0, 1}, {70, 10, 1}, 0},           // repeated rows
      {{6, 10, 4}, {10, 1, 0}, {40, 4, 1}, 0},            // repeated elements
      {{6, 8, 10}, {80, 10, 1}, {200, 20, 1}, 0},         // into a wider array
      {{8, 10, 6}, {10, 1, 80}, {60, 6, 1}, 0},           // a transpose
      {{5}, {7}, {3}, 2},
      {{}, {}, {}, 4},
      {{3, 0}, {1, 1}, {1, 1}, 0},
  };
  for (CpuLevel level : levels_here()) {
    for (const Copy& c : copies) {
      std::vector<float> y(2000, -1.0f), expected(y);
      const std::int64_t count = std::accumulate(c.dims.begin(), c.dims.end(), std::int64_t{1}, std::multiplies<>());
      for (std::int64_t o = 0; o < count; ++o) {
        std::int64_t rest = o, from = c.from_offset, to = 0;
        for (std::size_t i = c.dims.size(); i-- > 0;) {
          from += rest % c.dims[i] * c.from_strides[i];
          to += rest % c.dims[i] * c.to_strides[i];
          rest /= c.dims[i];
        }
        expected[static_cast<std::size_t>(to)] = x[static_cast<std::size_t>(from)];
      }
      strided_copy(threads, sizeof(float), c.dims, x.data() + c.from_offset, c.from_strides, y.data(), c.to_strides,
                   {.max_level = level});
      CHECK(y == expected);
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
