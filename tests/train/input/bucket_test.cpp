#include <dflow/train/input/bucket.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "train/input/running_input.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

// The behaviours come from TensorFlow 1.0, contrib/training/python/training/bucket_ops_test.py.

using namespace dflow;
using Catch::Matchers::Contains;

namespace {

using BucketNumbers = std::vector<std::int32_t>;

/// 0, 1, 2, ... below `end`.
Output<std::int32_t> counting_examples(Graph& graph, std::int64_t end) {
  const Variable<std::int64_t> count(graph, std::int64_t{0}, {.trainable = false});
  return cast<std::int32_t>(count_up_to(count, end, {.begins_at_zero = true}));
}

Output<std::int32_t> parity(const Output<std::int32_t>& x) { return x - (x / 2) * 2; }

}  // namespace

TEST_CASE("Batches are of one bucket each") {
  const int num_threads = GENERATE(1, 3);
  Graph graph;
  const auto number = counting_examples(graph, 64);
  const auto text = constant(graph, std::string("string"));
  auto [which, batch] = train::bucket(std::tuple{number, text}, parity(number), 16, 2);
  auto [numbers, texts] = batch;
  static_assert(std::is_same_v<decltype(numbers), Output<std::int32_t>>);
  CHECK(which.shape() == PartialShape{});
  CHECK(numbers.shape() == PartialShape{16});
  RunningInput running(graph, {.num_threads = num_threads});
  std::map<std::int32_t, BucketNumbers> seen;
  for (int i = 0; i < 4; ++i) {
    auto [bucket, n, t] = running.session.run(which, numbers, texts);
    CHECK(elements_of(t) == std::vector<std::string>(16, "string"));
    BucketNumbers& of_bucket = seen[bucket.scalar()];
    of_bucket.insert(of_bucket.end(), n.begin(), n.end());
  }
  CHECK(seen.size() == 2);
  for (const auto& [bucket, numbers_of_it] : seen) {
    REQUIRE(numbers_of_it.size() == 32);
    for (std::size_t i = 0; i < 32; ++i) CHECK(numbers_of_it[i] == static_cast<std::int32_t>(2 * i) + bucket);
  }
  CHECK(code_of([&] { return running.session.run(which); }) == Code::out_of_range);
  running.coordinator.join();
  CHECK_FALSE(running.coordinator.should_stop());
}

TEST_CASE("Each bucket has its batch size, and last batches are smaller where that is allowed") {
  Graph graph;
  const auto number = counting_examples(graph, 31);
  auto [which, numbers] = train::bucket(number, parity(number), {4, 7}, 2,
                                        {.bucket_capacities = {5, 8}, .allow_smaller_final_batch = true});
  CHECK(numbers.shape() == PartialShape{dynamic});
  RunningInput running(graph, {.num_threads = 1});
  std::map<std::int32_t, std::vector<std::int64_t>> sizes;
  try {
    for (;;) {
      auto [bucket, n] = running.session.run(which, numbers);
      sizes[bucket.scalar()].push_back(n.num_elements());
      for (const std::int32_t each : n) CHECK(each % 2 == bucket.scalar());
    }
  } catch (const Error& error) {
    CHECK(error.code() == Code::out_of_range);
  }
  CHECK(sizes[0] == std::vector<std::int64_t>{4, 4, 4, 4});
  CHECK(sizes[1] == std::vector<std::int64_t>{7, 7, 1});
  running.coordinator.join();
}

TEST_CASE("Only examples that are to be kept go to buckets") {
  Graph graph;
  const auto number = counting_examples(graph, 40);
  auto [which, numbers] = train::bucket(number, parity(number), 10, 2, {.keep = less(number, constant(graph, 20))});
  RunningInput running(graph);
  std::map<std::int32_t, BucketNumbers> seen;
  for (int i = 0; i < 2; ++i) {
    auto [bucket, n] = running.session.run(which, numbers);
    seen[bucket.scalar()] = elements_of(n);
  }
  CHECK(seen[0] == BucketNumbers{0, 2, 4, 6, 8, 10, 12, 14, 16, 18});
  CHECK(seen[1] == BucketNumbers{1, 3, 5, 7, 9, 11, 13, 15, 17, 19});
  CHECK(code_of([&] { return running.session.run(which); }) == Code::out_of_range);
}

TEST_CASE("Sequences are batched with those of about their length, and padded to the longest") {
  Graph graph;
  const auto number = counting_examples(graph, 60);
  const auto length = number - (number / 30) * 30 + 1;  // 1 to 30, twice
  const auto sequence = fill(reshape(length, {1}), length);
  auto [lengths, sequences] = train::bucket_by_sequence_length(
      length, sequence, 5, {4, 11, 21}, {.dynamic_pad = true, .allow_smaller_final_batch = true});
  CHECK(lengths.shape() == PartialShape{dynamic});
  CHECK(sequences.shape() == PartialShape{dynamic, dynamic});
  RunningInput running(graph);
  const auto bucket_of = [](std::int32_t n) { return n < 4 ? 0 : n < 11 ? 1 : n < 21 ? 2 : 3; };
  std::vector<int> seen(31);
  try {
    for (;;) {
      auto [l, s] = running.session.run(lengths, sequences);
      REQUIRE(l.num_elements() == s.dim(0));
      CHECK(s.dim(1) == *std::max_element(l.begin(), l.end()));
      for (std::int64_t row = 0; row < l.num_elements(); ++row) {
        CHECK(bucket_of(l(row)) == bucket_of(l(0)));
        ++seen[static_cast<std::size_t>(l(row))];
        for (std::int64_t i = 0; i < s.dim(1); ++i) CHECK(s(row, i) == (i < l(row) ? l(row) : 0));
      }
    }
  } catch (const Error& error) {
    CHECK(error.code() == Code::out_of_range);
  }
  for (std::size_t n = 1; n <= 30; ++n) CHECK(seen[n] == 2);
  running.coordinator.join();
}

TEST_CASE("A bucket that is none stops the coordinator") {
  const std::int32_t bucket = GENERATE(-1, 2);
  Graph graph;
  const auto number = counting_examples(graph, 64);
  auto [which, numbers] = train::bucket(number, constant(graph, bucket), 4, 2);
  RunningInput running(graph);
  CHECK(code_of([&] { return running.session.run(which); }) == Code::out_of_range);
  CHECK_THROWS_WITH(running.coordinator.join(), Contains("the buckets are those from 0 to 1, not"));
}

TEST_CASE("A stop ends all that fills and empties buckets") {
  Graph graph;
  const auto number = counting_examples(graph, 1'000'000);
  auto [which, numbers] = train::bucket(number, parity(number), 4, 2, {.num_threads = 2, .capacity = 2});
  RunningInput running(graph, {.num_threads = 1});
  for (int i = 0; i < 10; ++i) CHECK(running.session.run(numbers).num_elements() == 4);
  running.coordinator.request_stop();
  running.coordinator.join();
  CHECK(running.coordinator.running_threads().empty());
}

TEST_CASE("What cannot be bucketed is refused in the line that asks for it") {
  Graph graph;
  const auto x = constant(graph, 1);
  const auto pair = constant(graph, Tensor<int>({2}, {1, 2}));
  const auto yes = constant(graph, Tensor<bool>({1}, {true}));
  const std::size_t nodes = graph.num_nodes();
  const auto refused = [&](const train::BatchSizes& sizes, int count, const train::BucketOptions& options = {}) {
    return error_of([&] { return train::bucket(x, x, sizes, count, options); });
  };
  CHECK(contains(refused(4, 0), "there must be at least one bucket, not 0"));
  CHECK(contains(refused(0, 2), "the size of a batch must be at least 1, not 0"));
  CHECK(contains(refused({4, 5}, 3), "2 batch sizes for 3 buckets"));
  CHECK(contains(refused(4, 2, {.bucket_capacities = {4}}), "1 capacities for 2 buckets"));
  CHECK(contains(refused(4, 2, {.bucket_capacities = {4, 0}}), "capacity must be at least 1, not 0"));
  CHECK(contains(refused(4, 2, {.num_threads = 0}), "num_threads must be at least 1, not 0"));
  CHECK(contains(refused(4, 2, {.keep = yes}), "keep must be a scalar, not of shape [1]"));
  CHECK(contains(error_of([&] { return train::bucket(x, pair, 4, 2); }), "which must be a scalar, not of shape [2]"));
  const auto by_length = [&](const std::vector<std::int32_t>& boundaries) {
    return error_of([&] { return train::bucket_by_sequence_length(x, x, 4, boundaries); });
  };
  CHECK(contains(by_length({}), "there are no boundaries"));
  CHECK(contains(by_length({3, 3}), "boundaries do not ascend: 3, then 3"));
  CHECK(contains(by_length({3, 2}), "bucket_test.cpp"));
  CHECK(contains(error_of([&] {
                   return train::bucket_by_sequence_length(x, x, {4, 5}, {3, 6});
                 }),
                 "2 batch sizes for 3 buckets"));
  CHECK(graph.num_nodes() == nodes);
}
