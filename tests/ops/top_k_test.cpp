#include <dflow/ops/reduction/top_k.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// Numbers of which many are equal.
df::Tensor<float> repeated_numbers(const df::Shape& shape, std::uint64_t different) {
  df::Tensor<float> tensor(shape);
  std::uint64_t state = 7;
  for (float& value : tensor) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>((state >> 33) % different) - 20.0f;
  }
  return tensor;
}

/// The positions of the k largest elements of a row, by a stable sort.
std::vector<std::int32_t> sorted_positions(const float* row, std::int64_t n, std::int64_t k) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [row](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

}  // namespace

TEST_CASE("the k largest are those of a stable sort, for each k and any number of threads") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto k = df::placeholder<std::int32_t>(graph, df::Shape{});
  const auto top = df::top_k(x, k);
  const auto unsorted = df::top_k(x, k, {.sorted = false});
  df::Session one(graph, {.num_threads = 1}), four(graph, {.num_threads = 4});
  for (const std::uint64_t different : {3u, 50u, 100'000u}) {
    for (const std::int64_t n : {1, 5, 255, 256, 257, 1500}) {
      const df::Tensor<float> numbers = repeated_numbers({7, n}, different);
      for (std::int64_t wanted : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, n / 3, n - 1, n}) {
        wanted = std::clamp<std::int64_t>(wanted, 0, n);
        const df::Tensor<std::int32_t> count(static_cast<std::int32_t>(wanted));
        const auto [values, indices] = one.run({{x, numbers}, {k, count}}, top.values, top.indices);
        const auto [again, places] = four.run({{x, numbers}, {k, count}}, unsorted.values, unsorted.indices);
        REQUIRE(values.shape() == df::Shape{7, wanted});
        REQUIRE(indices.shape() == df::Shape{7, wanted});
        bool is_right = true;
        for (std::int64_t row = 0; row < 7; ++row) {
          const float* const from = numbers.data() + row * n;
          std::vector<std::int32_t> want = sorted_positions(from, n, wanted);
          for (std::int64_t i = 0; i < wanted; ++i) {
            const std::int32_t place = want[static_cast<std::size_t>(i)];
            is_right = is_right && indices(row, i) == place && values(row, i) == from[place];
          }
          std::sort(want.begin(), want.end());
          for (std::int64_t i = 0; i < wanted; ++i) {
            const std::int32_t place = want[static_cast<std::size_t>(i)];
            is_right = is_right && places(row, i) == place && again(row, i) == from[place];
          }
        }
        INFO("n = " << n << ", k = " << wanted << ", " << different << " different numbers");
        CHECK(is_right);
      }
    }
  }
}

TEST_CASE("the gradient goes to the largest elements, also where k and the rank are known in the step alone") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph);
  const auto k = df::placeholder<std::int32_t>(graph, df::Shape{});
  const auto top = df::top_k(x, k);
  CHECK(!top.values.shape().has_rank());
  const auto loss = df::reduce_sum(top.values * top.values * top.values);
  const auto dx = df::gradients(loss, x);
  df::Session session(graph);
  const df::Tensor<double> numbers({2, 1, 3}, {3, 1, 2, -1, -2, -3});
  const auto slope = session.run({{x, numbers}, {k, 2}}, dx);
  CHECK(std::vector<double>(slope.begin(), slope.end()) == std::vector<double>{27, 0, 12, 3, 12, 0});
  const auto two = df::top_k(x, 2).values;
  const auto cubes = df::reduce_sum(two * two * two);
  CHECK(df::check_gradients(session, cubes, {{x, numbers}}).is_ok());
  CHECK(df::check_gradients(session, df::gradients(cubes, x), {{x, numbers}}).is_ok());
  const auto none = session.run({{x, numbers}, {k, 0}}, dx);
  CHECK(std::all_of(none.begin(), none.end(), [](double value) { return value == 0; }));
  CHECK(session.run({{x, df::Tensor<double>(df::Shape{0, 3})}, {k, 2}}, dx).shape() == df::Shape{0, 3});
}

TEST_CASE("a k that does not fit is refused with the shapes, when it is known") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {4, 3});
  CHECK(df::top_k(x, 2).values.shape() == df::PartialShape{4, 2});
  CHECK(error_of([&] { df::top_k(x, 4); }).find("k = 4 is more than the 3 elements of a row") != std::string::npos);
  CHECK(error_of([&] { df::top_k(x, -1); }).find("k = -1 is negative") != std::string::npos);
  CHECK(error_of([&] { df::top_k(x, df::Tensor<std::int32_t>({1}, {1})); }).find("TopKV2") != std::string::npos);
  CHECK(error_of([&] {
          df::in_top_k(x, df::Tensor<std::int32_t>({4}, {0, 1, 2, 0}), -2);
        }).find("k = -2") != std::string::npos);
}
