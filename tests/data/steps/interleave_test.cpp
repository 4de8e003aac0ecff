#include <dflow/data/steps/interleave.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <ranges>
#include <vector>

namespace df = dflow;

namespace {

using Ints = std::vector<int>;

/// i, n times.
auto times(int n) {
  return [n](int i) { return range(i, i + 1).repeat(static_cast<std::uint64_t>(n)); };
}

/// The same by a walk over all places of the cycle, open or not.
Ints round_by_round(const std::vector<Ints>& lists, std::size_t cycle, std::size_t block) {
  std::vector<std::optional<Ints>> places(cycle);  // what is left of those that are open, the next one last
  std::size_t opened = 0, num_open = 0;
  Ints given;
  for (std::size_t at = 0; opened < lists.size() || num_open > 0; at = (at + 1) % cycle) {
    for (std::size_t in_block = 0; in_block < block;) {
      std::optional<Ints>& place = places[at];
      if (!place) {
        if (opened == lists.size()) break;
        place = lists[opened++];
        ++num_open;
      }
      if (place->empty()) {
        place.reset();
        --num_open;
        break;
      }
      given.push_back(place->back());
      place->pop_back();
      ++in_block;
    }
  }
  return given;
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

TEST_CASE("a cycle costs what is open of it, however long it is") {
  constexpr std::uint64_t far = std::uint64_t{1} << 60;
  const auto data = range(0, 3).interleave(times(2), {.cycle = far, .block = far});
  CHECK(all(data) == Ints{0, 0, 1, 1, 2, 2});
  // The state keeps nothing of datasets that have come to their end, at any place of the cycle.
  const auto empty = range(0, 100'000).interleave([](int i) { return range(0, i / 99'999); }, {.cycle = far});
  auto at = empty.iterate();
  CHECK(at.next() == 0);
  CHECK(at.state().size() < 200);
  auto restored = empty.iterate();
  restored.restore(at.state());
  CHECK_FALSE(restored.next());
  // There are as many open datasets as elements: the search for one looks at no other.
  const auto open = range(0, 100'000).interleave(times(2), {.cycle = far});
  int last = 0;
  for (const int i : open.skip(150'000)) last = i;
  CHECK(last == 99'999);
}

TEST_CASE("any cycle and block give what going round all places gives") {
  std::mt19937 random(5);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    std::vector<Ints> lists(below(8));
    for (std::size_t i = 0; i < lists.size(); ++i) lists[i].assign(below(5), static_cast<int>(i));
    const std::size_t cycle = 1 + below(6), block = 1 + below(3);
    const auto data = df::data::from_vector(lists).interleave(
        [](const Ints& list) { return df::data::from_vector(list); }, {.cycle = cycle, .block = block});
    CHECK(all(data) == round_by_round(lists, cycle, block));
  }
}
