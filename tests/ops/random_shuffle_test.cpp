#include <dflow/ops/random/shuffle.hpp>

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/saving/random_streams.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using namespace dflow;

namespace {

using Orders = std::vector<std::vector<std::int32_t>>;

/// The first three runs on 0, 1, ... in that shape, with the two given seeds.
Orders three_orders(const Shape& shape, std::int64_t seed, std::int64_t seed2) {
  Graph graph;
  Tensor<std::int32_t> numbers(shape);
  std::iota(numbers.data(), numbers.data() + numbers.num_elements(), 0);
  const Output<std::int32_t> x = constant(graph, numbers);
  const Output<std::int32_t> y(build<RandomShuffle>({x}, {.seed = seed, .seed2 = seed2}).output(0));
  CHECK(y.shape() == PartialShape(shape));
  Session session(graph, {.num_threads = 1});
  Orders orders;
  for (int run = 0; run < 3; ++run) {
    const Tensor<std::int32_t> got = session.run(y);
    CHECK(got.shape() == shape);
    orders.emplace_back(got.begin(), got.end());
  }
  return orders;
}

}  // namespace

// Expected values: TensorFlow 2.21.0, CPU, tf.raw_ops.RandomShuffle in a graph of its own, three runs of one session.

TEST_CASE("Rows are shuffled in TensorFlow's orders") {
  CHECK(three_orders({10}, 301, 17) ==
        Orders{{8, 7, 1, 3, 2, 4, 6, 5, 9, 0}, {7, 4, 0, 9, 2, 8, 5, 3, 1, 6}, {1, 5, 2, 3, 8, 4, 0, 6, 9, 7}});
  CHECK(three_orders({7}, 5, 0) == Orders{{1, 0, 5, 3, 4, 2, 6}, {3, 1, 0, 5, 2, 6, 4}, {1, 4, 2, 5, 6, 0, 3}});
  CHECK(three_orders({5, 2}, 301, 17) ==
        Orders{{6, 7, 8, 9, 0, 1, 4, 5, 2, 3}, {4, 5, 0, 1, 2, 3, 8, 9, 6, 7}, {6, 7, 8, 9, 0, 1, 4, 5, 2, 3}});
  CHECK(three_orders({1}, 301, 17) == Orders{{0}, {0}, {0}});
  CHECK(three_orders({0}, 1, 2) == Orders{{}, {}, {}});
  CHECK(three_orders({3, 0}, 1, 2) == Orders{{}, {}, {}});
}

TEST_CASE("Rows of every kind keep together, whatever the number of threads") {
  Graph graph;
  std::vector<std::string> words;
  for (int i = 0; i < 600; ++i) words.push_back("a word that is stored apart " + std::to_string(i));
  Tensor<std::string> strings({300, 2});
  std::copy(words.begin(), words.end(), strings.data());
  Tensor<double> numbers({3000, 7});
  std::iota(numbers.data(), numbers.data() + numbers.num_elements(), 0.0);
  const auto shuffled_strings = random_shuffle(constant(graph, strings), {.seed = 3});
  const auto shuffled_numbers = random_shuffle(constant(graph, numbers), {.seed = 3});
  std::vector<std::vector<double>> by_threads;
  for (const int threads : {1, 4}) {
    Session session(graph, {.num_threads = threads});
    auto [s, n] = session.run(shuffled_strings, shuffled_numbers);
    std::vector<std::string> seen(s.begin(), s.end());
    for (std::int64_t row = 0; row < 300; ++row) {
      const auto first = std::find(words.begin(), words.end(), s(row, 0));
      REQUIRE(first != words.end());
      CHECK((first - words.begin()) % 2 == 0);
      CHECK(s(row, 1) == first[1]);
    }
    std::sort(seen.begin(), seen.end());
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    for (std::int64_t row = 0; row < 3000; ++row) CHECK(n(row, 6) == n(row, 0) + 6);
    by_threads.emplace_back(n.begin(), n.end());
  }
  CHECK(by_threads[0] == by_threads[1]);
}

TEST_CASE("Each order comes about as often") {
  Graph graph;
  const auto y = random_shuffle(constant(graph, Tensor<std::int32_t>({3}, {0, 1, 2})), {.seed = 9});
  Session session(graph, {.num_threads = 1});
  std::map<std::vector<std::int32_t>, int> orders;
  for (int run = 0; run < 3000; ++run) {
    const Tensor<std::int32_t> got = session.run(y);
    ++orders[{got.begin(), got.end()}];
  }
  CHECK(orders.size() == 6);
  double chi_squared = 0;
  for (const auto& [order, times] : orders) chi_squared += (times - 500.0) * (times - 500.0) / 500.0;
  CHECK(chi_squared < 20.5);  // 5 degrees of freedom: one in a thousand is larger
}

TEST_CASE("Seeds come from the op or the graph, and its stream is saved with the others") {
  Graph graph({.seed = 4});
  const auto x = range(graph, 0, 50);
  const auto a = random_shuffle(x), b = random_shuffle(x);
  CHECK(train::random_streams_of(*graph.store()).size() == 2);
  Session session(graph, {.num_threads = 1});
  auto [first, second] = session.run(a, b);
  CHECK_FALSE(std::equal(first.begin(), first.end(), second.begin()));
  Graph again({.seed = 4});
  Session other(again, {.num_threads = 1});
  const Tensor<std::int32_t> same = other.run(random_shuffle(range(again, 0, 50)));
  CHECK(std::equal(first.begin(), first.end(), same.begin()));
}

TEST_CASE("A scalar cannot be shuffled") {
  Graph graph;
  const auto scalar = constant(graph, 1);
  CHECK(contains(error_of([&] { return random_shuffle(scalar); }), "random_shuffle_test.cpp"));
  CHECK_THROWS_AS(random_shuffle(Output<int>()), Error);
}
