#include <dflow/base/threads/wait_word.hpp>

#include "catch.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("a wait for a value that is gone returns at once", "[wait_word]") {
  const std::atomic<std::uint32_t> word{1};
  wait_while_equal(word, 0);
  SUCCEED("it did not block");
}

TEST_CASE("a token goes back and forth between two threads", "[wait_word]") {
  std::atomic<std::uint32_t> turn{0};
  const auto play = [&](std::uint32_t mine) {
    for (int i = 0; i < 200; ++i) {
      while (turn.load() != mine) wait_while_equal(turn, 1 - mine);
      turn.store(1 - mine);
      wake_one(turn);
    }
  };
  std::thread other(play, 1u);
  play(0);
  other.join();
  CHECK(turn == 0);
}

TEST_CASE("wake_all wakes all", "[wait_word]") {
  std::atomic<std::uint32_t> gate{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (gate.load() == 0) wait_while_equal(gate, 0);
    });
  }
  gate.store(1);
  wake_all(gate);
  for (auto& thread : threads) thread.join();
  SUCCEED("all passed the gate");
}
