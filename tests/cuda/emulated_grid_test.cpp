#include "catch.hpp"

#include <dflow/base/status.hpp>
#include <dflow/kernels/cuda/grid/emulated_grid.hpp>

#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using dflow::cuda::EmulatedBlock;

/// Each thread of a block reads its neighbour's number after one barrier, and its neighbour's reading after another.
std::vector<std::uint32_t> of_neighbours(std::uint32_t threads, std::uint64_t order) {
  std::vector<std::uint32_t> first(threads), second(threads), third(threads);
  EmulatedBlock::run(threads, order, [&](EmulatedBlock& block, std::uint32_t index) {
    const std::uint32_t next = (index + 1) % threads;
    first[index] = index;
    block.barrier();
    second[index] = first[next];
    block.barrier();
    third[index] = second[next];
  });
  return third;
}

bool sees_neighbours(std::uint32_t threads, std::uint64_t order) {
  const std::vector<std::uint32_t> seen = of_neighbours(threads, order);
  for (std::uint32_t t = 0; t < threads; ++t) {
    if (seen[t] != (t + 2) % threads) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("threads of an emulated block meet at barriers, in whatever order they run", "[cuda][grid]") {
  for (const std::uint32_t threads : {1u, 2u, 3u, 256u, 1024u, 7u}) {
    for (std::uint64_t order = 0; order < 5; ++order) {
      INFO(threads << " threads, order " << order);
      CHECK(sees_neighbours(threads, order));
    }
  }
}

TEST_CASE("a block whose threads part says so, and the blocks after it are whole", "[cuda][grid]") {
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t parting : {0u, 3u, 7u}) {
      const auto part = [&] {
        EmulatedBlock::run(8, 0, [&](EmulatedBlock& block, std::uint32_t index) {
          if (index != parting) block.barrier();
        });
      };
      CHECK_THROWS_WITH(part(), Catch::Matchers::Contains("1 of 8 threads of a block end while others wait"));
      CHECK(sees_neighbours(8, 1));
      CHECK(sees_neighbours(64, 2));
    }
  }
}

TEST_CASE("what a thread of an emulated block throws reaches the caller, and the blocks after it are whole",
          "[cuda][grid]") {
  for (int round = 0; round < 3; ++round) {
    const auto fail = [] {
      EmulatedBlock::run(32, 0, [](EmulatedBlock& block, std::uint32_t index) {
        block.barrier();
        if (index == 5) throw std::runtime_error("the fifth");
        block.barrier();
      });
    };
    CHECK_THROWS_WITH(fail(), "the fifth");
    CHECK(sees_neighbours(32, 0));
  }
}

TEST_CASE("threads of the host run emulated blocks side by side, and end", "[cuda][grid]") {
  for (int round = 0; round < 3; ++round) {
    std::vector<int> wrong(3);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&wrong, t] {
        for (std::uint64_t order = 0; order < 20; ++order) wrong[t] += !sees_neighbours(33, order);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>{0, 0, 0});
  }
}
