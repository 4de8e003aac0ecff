#include <dflow/data/steps/batch.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

template <class E>
std::vector<std::string> printed(const df::data::Dataset<E>& data) {
  std::vector<std::string> all;
  for (auto& element : data) all.push_back(element.to_string());
  return all;
}

/// n times the number n.
df::Tensor<int> row(int n) { return df::Tensor<int>::full({n}, n); }

}  // namespace

TEST_CASE("numbers, strings, tensors and what is made of them become batches") {
  CHECK(printed(range(5).batch(2)) == std::vector<std::string>{"int32[2] [0, 1]", "int32[2] [2, 3]", "int32[1] [4]"});
  CHECK(printed(range(5).batch(2, {.drop_remainder = true})).size() == 2);
  CHECK(printed(range(4).batch(2).batch(2)) == std::vector<std::string>{"int32[2,2] [[0, 1], [2, 3]]"});
  const auto nested = range(3).map([](int i) {
    return std::tuple{std::pair{i, std::string(1, static_cast<char>('a' + i))}, 0.5f};
  });
  int count = 0;
  for (auto& [inner, half] : nested.batch(3)) {
    CHECK(inner.first.to_string() == "int32[3] [0, 1, 2]");
    CHECK(inner.second(2) == "c");
    CHECK(half(1) == 0.5f);
    ++count;
  }
  CHECK(count == 1);
  CHECK(code_of([] { return range(3).batch(0); }) == df::Code::invalid_argument);
}

TEST_CASE("rows that lie side by side are a batch without a copy, others are copied") {
  const df::Tensor<float> x({6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto rows = df::data::from_tensors(x);
  int i = 0;
  const auto places = rows.skip(1).batch(2).map([](const df::Tensor<float>& batch) { return batch.data(); });
  for (const float* const place : places) CHECK(place == x.data() + 2 + 4 * i++);
  CHECK(i == 3);
  for (auto& batch : rows.take(4).shuffle(4, {.seed = 5}).batch(4)) {
    CHECK(!batch.shares_buffer_with(x));
    CHECK(batch.shape() == df::Shape{4, 2});
    CHECK(batch(0, 1) == batch(0, 0) + 1);
  }
  for (auto& batch : df::data::from_tensors(df::Tensor<float>({4, 0})).batch(3)) CHECK(batch.dim(1) == 0);
}

TEST_CASE("elements that do not fit together are an error that says which") {
  const auto ragged = range(3).map([](int i) { return row(i + 1); }).batch(2);
  const std::string error = error_of([&] { return printed(ragged); });
  CHECK(contains(error, "element 1 of a batch is int32[2], the first is int32[1]"));
  CHECK(contains(error, "padded_batch"));
}

TEST_CASE("padded batches fill up to the largest extents of the batch") {
  const auto data = range(3).map([](int i) { return row(i + 1); });
  CHECK(printed(data.padded_batch(2)) ==
        std::vector<std::string>{"int32[2,2] [[1, 0], [2, 2]]", "int32[1,3] [[3, 3, 3]]"});
  CHECK(printed(data.padded_batch(2, {.drop_remainder = true, .padding = -1})) ==
        std::vector<std::string>{"int32[2,2] [[1, -1], [2, 2]]"});
  const auto words = range(2).map([](int i) { return df::Tensor<std::string>::full({i}, "x"); });
  CHECK(printed(words.padded_batch(2)).front() == R"(string[2,1] [[""], ["x"]])");
  const auto matrices = range(2).map([](int i) {
    return df::Tensor<float>::full({2 - i, 1 + i}, 1.0f + static_cast<float>(i));
  });
  CHECK(printed(matrices.padded_batch(2)).front() == "float[2,2,2] [[[1, 0], [1, 0]], [[2, 2], [0, 0]]]");
  CHECK(code_of([&] { return printed(data.padded_batch(2, {.padding = 0.5})); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return printed(data.padded_batch(2, {.padding = 1e10})); }) == df::Code::invalid_argument);
  const auto ranks = range(2).map([](int i) {
    return i == 0 ? df::Tensor<int>(df::Shape{1}) : df::Tensor<int>({1, 1});
  });
  CHECK(code_of([&] { return printed(ranks.padded_batch(2)); }) == df::Code::invalid_argument);
}

TEST_CASE("buckets collect elements of about one length") {
  // As tf.data.Dataset.bucket_by_sequence_length of TensorFlow 2.21 with bucket_boundaries=[3, 5],
  // bucket_batch_sizes=[2, 2, 2]: batches as they become full, and at the end the remaining rows by length.
  const auto data = df::data::from_vector(std::vector<int>{1, 3, 6, 2, 7, 4, 1, 8}).map([](int n) { return row(n); });
  const auto length = [](const df::Tensor<int>& x) { return x.dim(0); };
  df::data::BucketOptions options{.boundaries = {3, 5}, .sizes = {2, 2, 2}};
  std::vector<df::Shape> shapes;
  for (auto& batch : data.bucket_by_length(length, options)) shapes.push_back(batch.shape());
  CHECK(shapes == std::vector<df::Shape>{{2, 2}, {2, 7}, {2, 4}, {1, 1}, {1, 8}});
  options.drop_remainder = true;
  CHECK(printed(data.bucket_by_length(length, options)).size() == 3);
  for (const auto& bad : {df::data::BucketOptions{.boundaries = {3}, .sizes = {2}},
                          df::data::BucketOptions{.boundaries = {3, 3}, .sizes = {2, 2, 2}},
                          df::data::BucketOptions{.boundaries = {3}, .sizes = {2, 0}}}) {
    CHECK(code_of([&] { return data.bucket_by_length(length, bad); }) == df::Code::invalid_argument);
  }
}

TEST_CASE("windows of elements that only move are made where they have nothing in common") {
  using Moved = std::unique_ptr<int>;
  const auto moved = df::data::from_generator([] {
    return [i = 0]() mutable -> std::optional<Moved> {
      return i < 10 ? std::optional(std::make_unique<int>(i++)) : std::nullopt;
    };
  });
  const auto sums = [](const df::data::Dataset<std::vector<Moved>>& windows) {
    return all(windows.map([](const std::vector<Moved>& window) {
      int sum = 0;
      for (const Moved& each : window) sum += *each;
      return sum;
    }));
  };
  using Ints = std::vector<int>;
  CHECK(sums(moved.window(3, {.drop_remainder = true})) == Ints{3, 12, 21});
  CHECK(sums(moved.window(3, {.shift = 4, .drop_remainder = false})) == Ints{3, 15, 17});
  const auto windows = moved.window(2, {.shift = 3});
  auto at = windows.iterate();
  at.next();
  auto restored = windows.iterate();
  restored.restore(at.state());
  CHECK(*at.next()->at(1) == 4);
  CHECK(*restored.next()->at(1) == 4);
  const std::string error = error_of([&] { return moved.window(3, {.shift = 1}); });
  CHECK(contains(error, "windows of 3 elements with a shift of 1 have elements in common"));
  // Windows of windows, and containers that say that they can be copied, also with elements that cannot.
  CHECK(all(windows.window(2, {.drop_remainder = true})).size() == 2);
}

TEST_CASE("an element is copied for each of its windows but the last") {
  const auto copies = std::make_shared<int>(0);
  struct Counted {
    explicit Counted(std::shared_ptr<int> of) : copies(std::move(of)) {}
    Counted(const Counted& other) : copies(other.copies) { ++*copies; }
    Counted(Counted&&) noexcept = default;
    std::shared_ptr<int> copies;
  };
  const auto data = range(6).map([copies](int) { return Counted(copies); });
  CHECK(all(data.window(2, {.shift = 2})).size() == 3);
  CHECK(*copies == 0);
  CHECK(all(data.window(2, {.shift = 1, .drop_remainder = true})).size() == 5);
  CHECK(*copies == 5);
}

TEST_CASE("a window may be larger than what there is, restored ones too") {
  const auto windows = range(5).window(std::uint64_t{1} << 40, {.shift = 1});
  auto at = windows.iterate();
  CHECK(at.next()->size() == 5);
  auto restored = windows.iterate();
  restored.restore(at.state());
  CHECK(restored.next()->size() == 4);
}

TEST_CASE("what batches are filled up with is part of what a state is of") {
  const auto rows = range(6).map(row);
  const auto length = [](const df::Tensor<int>& x) { return x.dim(0); };
  const auto padded = [&](double padding) { return rows.padded_batch(2, {.padding = padding}); };
  const auto buckets = [&](double padding) {
    return rows.bucket_by_length(length, {.boundaries = {3}, .sizes = {2, 2}, .padding = padding});
  };
  const auto restoring = [](const auto& of, const auto& from) {
    return error_of([&] { return of.iterate().restore(from.iterate().state()), 0; });
  };
  CHECK(contains(restoring(padded(-1), padded(0.1)), "filled up with 0.1)', not of"));
  CHECK(contains(restoring(buckets(1), buckets(2)), "filled up with 2)', not of"));
  CHECK(restoring(padded(2), padded(2)) == "no error");
  CHECK(restoring(buckets(2), buckets(2)) == "no error");
}
