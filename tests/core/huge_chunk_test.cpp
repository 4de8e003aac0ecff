#include <dflow/core/memory/huge_chunk.hpp>

#include "catch.hpp"

#include <algorithm>
#include <cstddef>
#include <random>

using namespace dflow;

TEST_CASE("the longest free run of a chunk is found", "[huge_chunk]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    detail::HugeChunk chunk;
    chunk.free = random() | (i % 3 == 0 ? random() : 0) | (i % 5 == 0 ? random() : 0);
    if (i % 7 == 0) chunk.free &= random();
    std::size_t longest = 0;
    for (std::size_t at = 0, run = 0; at < 64; ++at) {
      run = (chunk.free >> at & 1u) != 0 ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    if (chunk.longest_run() != longest) FAIL("of " << chunk.free);
  }
  SUCCEED("all right");
}
