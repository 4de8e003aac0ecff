#include <dflow/state/random_stream.hpp>

#include "catch.hpp"

#include <algorithm>
#include <thread>
#include <vector>

using dflow::PhiloxStream;
using dflow::RandomStream;

TEST_CASE("A run takes 256 groups of words for each of its values") {
  RandomStream stream("x", 3, 4);
  CHECK(stream.position() == 0);
  PhiloxStream first = stream.reserve(2), second = stream.reserve(1);
  CHECK(stream.position() == 3 * 256);
  PhiloxStream whole = PhiloxStream::from_seeds(3, 4);
  CHECK(first.next() == whole.next());
  whole.skip(2 * 256 - 1);
  CHECK(second.next() == whole.next());
}

TEST_CASE("A stream set back draws the same again, in another object too") {
  RandomStream stream("x", 3, 4);
  stream.reserve(5);
  const dflow::RandomStreamState kept = stream.state();
  CHECK(kept == dflow::RandomStreamState{3, 4, 5 * 256});
  PhiloxStream drawn = stream.reserve(7);
  const auto words = drawn.next();
  stream.set_position(kept.position);
  CHECK(stream.reserve(7).next() == words);
  RandomStream other("y", 1, 2);
  other.set_state(kept);
  CHECK(other.reserve(7).next() == words);
  CHECK(other.state() == dflow::RandomStreamState{3, 4, 12 * 256});
  CHECK(other.debug_string() == "RandomStream 'y' (seeds 3 and 4, position 3072)");
}

TEST_CASE("Threads that reserve at once get parts that do not overlap", "[stress]") {
  RandomStream stream("x", 3, 4);
  std::vector<std::vector<std::uint64_t>> begins(4);
  std::vector<std::thread> threads;
  for (auto& mine : begins) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const PhiloxStream part = stream.reserve(1);
        mine.push_back(part.counter[0] | std::uint64_t{part.counter[1]} << 32);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& mine : begins) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == i * 256);
}
