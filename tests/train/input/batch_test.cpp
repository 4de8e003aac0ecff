#include <dflow/train/input/batch.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "train/input/running_input.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

// The behaviours come from TensorFlow 0.8, python/training/input_test.py.

using namespace dflow;
using Catch::Matchers::Contains;

namespace {

using Numbers = std::vector<std::int64_t>;

/// 0, 1, 2, ... below `end`: int64, a scalar in each step.
Output<std::int64_t> counting(Graph& graph, std::int64_t end) {
  const Variable<std::int64_t> count(graph, std::int64_t{0}, {.trainable = false});
  return count_up_to(count, end, {.begins_at_zero = true});
}

Numbers numbers_from(std::int64_t begin, std::int64_t end) {
  Numbers all;
  for (; begin < end; ++begin) all.push_back(begin);
  return all;
}

}  // namespace

TEST_CASE("One thread makes batches in order, and drops what fills none") {
  const int num_threads = GENERATE(1, 3);
  Graph graph;
  const auto count = counting(graph, 25);
  const auto text = constant(graph, std::string("string"));
  auto [numbers, doubled, texts] = train::batch(std::tuple{count, cast<float>(count) * 2.0f, text}, 10);
  static_assert(std::is_same_v<decltype(doubled), Output<float>>);
  static_assert(std::is_same_v<decltype(texts), Output<std::string>>);
  CHECK(numbers.shape() == PartialShape{10});
  RunningInput running(graph, {.num_threads = num_threads});
  for (std::int64_t i = 0; i < 2; ++i) {
    auto [n, d, t] = running.session.run(numbers, doubled, texts);
    CHECK(elements_of(n) == numbers_from(10 * i, 10 * i + 10));
    for (int k = 0; k < 10; ++k) CHECK(d(k) == 2.0f * static_cast<float>(n(k)));
    CHECK(elements_of(t) == std::vector<std::string>(10, "string"));
  }
  CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
  running.coordinator.join();
  CHECK_FALSE(running.coordinator.should_stop());
}

TEST_CASE("The last batch is smaller where that is allowed") {
  Graph graph;
  const Output<std::int64_t> numbers = train::batch(counting(graph, 25), 10, {.allow_smaller_final_batch = true});
  CHECK(numbers.shape() == PartialShape{dynamic});
  RunningInput running(graph);
  CHECK(running.session.run(numbers).num_elements() == 10);
  CHECK(running.session.run(numbers).num_elements() == 10);
  CHECK(elements_of(running.session.run(numbers)) == numbers_from(20, 25));
  CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
}

TEST_CASE("Several threads make each example once") {
  Graph graph;
  const Output<std::int64_t> numbers = train::batch(counting(graph, 80), 8, {.num_threads = 4, .capacity = 3});
  RunningInput running(graph);
  Numbers all;
  for (int i = 0; i < 10; ++i) {
    const Numbers batch = elements_of(running.session.run(numbers));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == numbers_from(0, 80));
  CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
}

TEST_CASE("Many examples at once are batched anew") {
  Graph graph;
  const auto count = counting(graph, 6);
  const auto rows = pack(
      {count * std::int64_t{3}, count * std::int64_t{3} + std::int64_t{1}, count * std::int64_t{3} + std::int64_t{2}});
  const Output<std::int64_t> numbers = train::batch(rows, 4, {.enqueue_many = true});
  CHECK(numbers.shape() == PartialShape{4});
  RunningInput running(graph);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(elements_of(running.session.run(numbers)) == numbers_from(4 * i, 4 * i + 4));
  }
  CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
}

TEST_CASE("Examples of different sizes are padded, numbers with zeros and strings with empty ones") {
  Graph graph;
  const auto count = counting(graph, 6);
  const auto length = cast<std::int32_t>(count) + 1;
  const auto sequence = range(constant(graph, 1), length, constant(graph, 1));
  const auto words = fill(reshape(length, {1}), constant(graph, std::string("w")));
  auto [sequences, texts] = train::batch(std::tuple{sequence, words}, 3, {.dynamic_pad = true});
  CHECK(sequences.shape() == PartialShape{3, dynamic});
  RunningInput running(graph);
  auto [s, t] = running.session.run(sequences, texts);
  CHECK(s.shape() == Shape{3, 2});
  CHECK(elements_of(s) == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2});
  CHECK(t.shape() == Shape{3, 3});
  CHECK(elements_of(t) == std::vector<std::string>{"w", "", "", "w", "w", "", "w", "w", "w"});
  CHECK(running.session.run(sequences).shape() == Shape{3, 5});
}

TEST_CASE("Only examples that are to be kept are batched") {
  Graph graph;
  const auto count = counting(graph, 20);
  const auto is_even = equal(count - (count / std::int64_t{2}) * std::int64_t{2}, constant(graph, std::int64_t{0}));
  const Output<std::int64_t> numbers = train::batch(count, 5, {.keep = is_even});
  RunningInput running(graph);
  CHECK(elements_of(running.session.run(numbers)) == Numbers{0, 2, 4, 6, 8});
  CHECK(elements_of(running.session.run(numbers)) == Numbers{10, 12, 14, 16, 18});

  Graph many;
  const auto i = counting(many, 4);
  const auto rows = pack({i, i + std::int64_t{100}, i + std::int64_t{200}});
  const auto keep = constant(many, Tensor<bool>({3}, {true, false, true}));
  const Output<std::int64_t> kept = train::batch(rows, 4, {.enqueue_many = true, .keep = keep});
  RunningInput other(many);
  CHECK(elements_of(other.session.run(kept)) == Numbers{0, 200, 1, 201});
}

TEST_CASE("Sets of edges are batched together, each by a thread of its own") {
  Graph graph;
  using Example = std::tuple<Output<std::int64_t>, Output<std::string>>;
  std::vector<Example> readers;
  readers.emplace_back(counting(graph, 20), constant(graph, std::string("a")));
  readers.emplace_back(counting(graph, 35) + std::int64_t{100}, constant(graph, std::string("b")));
  auto [numbers, names] = train::batch_join(readers, 8, {.capacity = 5, .allow_smaller_final_batch = true});
  static_assert(std::is_same_v<decltype(names), Output<std::string>>);
  RunningInput running(graph);
  CHECK(running.coordinator.running_threads().size() <= 2);
  std::map<std::string, Numbers> seen;
  int batches = 0;
  for (; batches < 7; ++batches) {
    auto [n, name] = running.session.run(numbers, names);
    CHECK(n.num_elements() == (batches < 6 ? 8 : 7));
    for (std::int64_t i = 0; i < n.num_elements(); ++i) seen[name(i)].push_back(n(i));
  }
  // Each reader's own order is kept.
  CHECK(seen["a"] == numbers_from(0, 20));
  CHECK(seen["b"] == numbers_from(100, 135));
  CHECK(code_of([&] { return running.session.run(names); }) == Code::out_of_range);
  running.coordinator.join();
}

TEST_CASE("Sets of edges of different sizes are padded to the largest") {
  Graph graph;
  const std::vector<Output<int>> readers{constant(graph, Tensor<int>({2}, {1, 2})),
                                         constant(graph, Tensor<int>({3}, {1, 2, 3}))};
  const Output<int> batch = train::batch_join(readers, 16, {.dynamic_pad = true});
  CHECK(batch.shape() == PartialShape{16, dynamic});
  CHECK(contains(error_of([&] { return train::batch_join(readers, 16); }), "examples of shapes [2] and [3]"));
  RunningInput running(graph);
  for (int i = 0; i < 5; ++i) {
    const Tensor<int> got = running.session.run(batch);
    for (std::int64_t row = 0; row < 16; ++row) {
      CHECK(got(row, 1) == 2);
      if (got.dim(1) == 3) CHECK((got(row, 2) == 3 || got(row, 2) == 0));
    }
  }
}

TEST_CASE("Shuffled batches have each example once, in an order that the seed decides") {
  const auto run = [](std::uint64_t seed) {
    Graph graph;
    const Output<std::int64_t> numbers = train::shuffle_batch(
        counting(graph, 103), 10,
        {.capacity = 32, .min_after_dequeue = 16, .seed = seed, .allow_smaller_final_batch = true});
    RunningInput running(graph);
    Numbers all;
    for (int i = 0; i < 11; ++i) {
      const Numbers batch = elements_of(running.session.run(numbers));
      CHECK(batch.size() == (i < 10 ? 10 : 3));
      all.insert(all.end(), batch.begin(), batch.end());
    }
    CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
    return all;
  };
  const Numbers all = run(5);
  CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == 103);
  CHECK(all != numbers_from(0, 103));
  // Among the first ten are none that the queue cannot have held yet.
  CHECK(*std::max_element(all.begin(), all.begin() + 10) < 32 + 10);
  CHECK(run(6) != all);
}

TEST_CASE("Sets of edges are shuffled together") {
  Graph graph;
  const std::vector<Output<std::int64_t>> readers{counting(graph, 50), counting(graph, 50) + std::int64_t{100}};
  const Output<std::int64_t> numbers =
      train::shuffle_batch_join(readers, 20, {.capacity = 32, .min_after_dequeue = 16, .seed = 1});
  RunningInput running(graph);
  Numbers all;
  for (int i = 0; i < 5; ++i) {
    const Numbers batch = elements_of(running.session.run(numbers));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  std::sort(all.begin(), all.end());
  Numbers expected = numbers_from(0, 50);
  const Numbers others = numbers_from(100, 150);
  expected.insert(expected.end(), others.begin(), others.end());
  CHECK(all == expected);
  CHECK(code_of([&] { return running.session.run(numbers); }) == Code::out_of_range);
}

TEST_CASE("Producers, slices and batches go epoch after epoch, in parallel on one thread of the session") {
  Graph graph;
  const auto x = constant(graph, Tensor<float>({6, 1}, {0, 1, 2, 3, 4, 5}));
  const auto y = constant(graph, Tensor<std::int32_t>({6}, {0, 1, 2, 3, 4, 5}));
  auto [image, label] = train::slice_input_producer(std::tuple{x, y}, {.num_epochs = 5, .seed = 3});
  auto [images, labels] = train::shuffle_batch(
      std::tuple{image, label}, 4,
      {.capacity = 12, .min_after_dequeue = 4, .seed = 2, .num_threads = 2, .allow_smaller_final_batch = true});
  CHECK(images.shape() == PartialShape{dynamic, 1});
  RunningInput running(graph, {.num_threads = 1});
  std::vector<int> seen(6);
  try {
    for (;;) {
      auto [i, l] = running.session.run(images, labels);
      for (std::int64_t row = 0; row < l.dim(0); ++row) {
        CHECK(i(row, 0) == static_cast<float>(l(row)));
        ++seen[static_cast<std::size_t>(l(row))];
      }
    }
  } catch (const Error& error) {
    CHECK(error.code() == Code::out_of_range);
  }
  CHECK(seen == std::vector<int>(6, 5));
  running.coordinator.join();
}

TEST_CASE("What cannot be batched is refused in the line that asks for it") {
  Graph graph, other;
  const auto one = constant(graph, 1), theirs = constant(other, 1);
  const auto pair = constant(graph, Tensor<int>({2}, {1, 2}));
  const auto some = constant(graph, Tensor<bool>({2}, {true, false}));
  const std::size_t nodes = graph.num_nodes();
  const auto refused = [&](std::int32_t size, const train::BatchOptions& options, const Output<int>& x) {
    return error_of([&] { return train::batch(x, size, options); });
  };
  CHECK(contains(refused(0, {}, one), "the size of a batch must be at least 1, not 0"));
  CHECK(contains(refused(0, {}, one), "batch_test.cpp"));
  CHECK(contains(refused(1, {.num_threads = 0}, one), "num_threads must be at least 1, not 0"));
  CHECK(contains(refused(1, {.capacity = 0}, one), "capacity must be at least 1, not 0"));
  CHECK(contains(refused(1, {.enqueue_many = true}, one), "tensor 0 is a scalar, which has no rows"));
  CHECK(contains(refused(1, {.shapes = {{}, {}}}, one), "2 shapes for 1 tensors"));
  CHECK(contains(refused(1, {.shapes = {{3}}}, pair), "tensor 0 has examples of shapes [3] and [2]"));
  CHECK(contains(refused(1, {.keep = some}, pair), "keep must be a scalar, not of shape [2]"));
  CHECK(contains(refused(1, {}, Output<int>()), "an edge is empty"));
  CHECK(contains(error_of([&] { return train::batch(std::tuple{one, theirs}, 1); }), "edges of different graphs"));
  CHECK(contains(error_of([&] { return train::batch_join(std::vector<Output<int>>{}, 1); }), "nothing to batch"));
  CHECK(contains(error_of([&] { return train::shuffle_batch(one, 1, {.capacity = 4, .min_after_dequeue = 4}); }),
                 "capacity 4 must exceed min_after_dequeue 4"));
  CHECK(contains(error_of([&] { return train::shuffle_batch(one, 1, {}); }), "must exceed"));
  CHECK(graph.num_nodes() == nodes);
  CHECK(graph.collection(train::queue_runner_collection).empty());
}
