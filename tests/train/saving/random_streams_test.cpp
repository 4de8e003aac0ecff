#include <dflow/train/saving/random_streams.hpp>

#include "catch.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <vector>

using namespace dflow;

TEST_CASE("Random nodes with seeds draw again what they drew first, each time they are rewound") {
  Graph graph({.seed = 7});
  const auto uniform = random_uniform<float>(graph, {4});
  const auto normal = random_normal<float>(graph, {3});
  const auto integers = random_uniform_int<std::int32_t>(graph, {5}, {.minval = 0, .maxval = 1000});
  const Operation rewind = train::rewind_random_streams(*graph.store());
  Session session(graph);
  const auto draw = [&] {
    const auto [u, n, i] = session.run(uniform, normal, integers);
    std::vector<float> all(u.begin(), u.end());
    all.insert(all.end(), n.begin(), n.end());
    all.insert(all.end(), i.begin(), i.end());
    return all;
  };
  const std::vector<float> first = draw(), second = draw();
  CHECK(first != second);
  for (int round = 0; round < 3; ++round) {
    session.run(rewind);
    CHECK(draw() == first);
    CHECK(draw() == second);
  }
}

TEST_CASE("Without random nodes that have seeds there is nothing to rewind") {
  Graph graph;
  CHECK_FALSE(train::rewind_random_streams(*graph.store()).is_valid());
  static_cast<void>(random_uniform<float>(graph, {4}));
  CHECK_FALSE(train::rewind_random_streams(*graph.store()).is_valid());
  CHECK(train::random_streams_of(*graph.store()).size() == 1);
}
