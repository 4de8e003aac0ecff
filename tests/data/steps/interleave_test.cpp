#include <dflow/data/steps/interleave.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "errors.hpp"

#include <dflow/data/from.hpp>

#include <ranges>
#include <vector>

namespace df = dflow;

namespace {

using Ints = std::vector<int>;

/// i, n times.
auto times(int n) {
  return [n](int i) { return range(i, i + 1).repeat(static_cast<std::uint64_t>(n)); };
}

}  // namespace

TEST_CASE("interleave takes blocks of several datasets in turn") {
  // The example of tf.data.Dataset.interleave's documentation.
  CHECK(all(range(1, 6).interleave(times(6), {.cycle = 2, .block = 4})) ==
        Ints{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5});
  // tf.data.Dataset.range(5).interleave(lambda i: tf.data.Dataset.range(i), cycle_length=3) of TensorFlow 2.21.
  CHECK(all(range(0, 5).interleave([](int i) { return range(0, i); }, {.cycle = 3})) ==
        Ints{0, 0, 0, 1, 1, 0, 2, 1, 2, 3});
  CHECK(all(range(0, 3).interleave(times(2), {.cycle = 1000})) == Ints{0, 1, 2, 0, 1, 2});
  CHECK(all(range(0, 0).interleave(times(2))).empty());
  CHECK(all(range(0, 4).interleave(times(0))).empty());
}

TEST_CASE("flat_map gives one dataset after the other") {
  CHECK(all(range(0, 4).flat_map([](int i) { return range(0, i); })) == Ints{0, 0, 1, 0, 1, 2});
}

TEST_CASE("an interleave without a cycle or a block is an error") {
  CHECK(code_of([] { return range(0, 3).interleave(times(1), {.cycle = 0}); }) == df::Code::invalid_argument);
  CHECK(code_of([] { return range(0, 3).interleave(times(1), {.block = 0}); }) == df::Code::invalid_argument);
}
