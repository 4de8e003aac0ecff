#include <dflow/data/steps/parallel_map.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <vector>

namespace df = dflow;

TEST_CASE("several threads map at once, and elements keep their order") {
  // Four calls wait for one another, which only four threads can do.
  const auto meeting = std::make_shared<std::barrier<>>(4);
  const auto data = range(64).map(
      [meeting](int i) {
        meeting->arrive_and_wait();
        return i * 2;
      },
      {.threads = 4, .ahead = 4});
  const std::vector<int> given = all(data);
  REQUIRE(given.size() == 64);
  for (int i = 0; i < 64; ++i) CHECK(given[static_cast<std::size_t>(i)] == 2 * i);
}

TEST_CASE("a pool that is given runs the calls, also one without threads") {
  const auto twice = [](int i) { return 2 * i; };
  for (const std::shared_ptr<df::ThreadPool>& pool :
       {std::shared_ptr<df::ThreadPool>(std::make_shared<df::InlinePool>()),
        std::shared_ptr<df::ThreadPool>(std::make_shared<df::WorkStealingPool>(2))}) {
    CHECK(all(range(100).map(twice, {.pool = pool})) == all(range(100).map(twice)));
    // A reader that is itself a task of the pool does the pool's work while it waits.
    std::vector<int> read;
    df::PoolEvent is_done;
    pool->schedule([&] {
      read = all(range(100).map(twice, {.pool = pool}));
      is_done.set();
    });
    pool->wait(is_done);
    CHECK(read == all(range(100).map(twice)));
  }
}

TEST_CASE("what a call or the input throws comes where its element would have come") {
  const auto fails = [](int i) { return i == 3 ? throw std::domain_error("three") : i; };
  for (const auto& data :
       {range(9).map(fails, {.threads = 3}), range(9).map(fails).map([](int i) { return i; }, {.threads = 3})}) {
    auto at = data.iterate();
    for (int i = 0; i < 3; ++i) CHECK(at.next() == i);
    CHECK_THROWS_WITH(at.next(), "in step map, element 3: three");
  }
}

TEST_CASE("an iterator that goes while calls are under way waits for those") {
  const auto running = std::make_shared<std::atomic<int>>(0);
  for (int round = 0; round < 50; ++round) {
    const auto data = range(1000).map(
        [running](int i) {
          running->fetch_add(1);
          volatile int work = 0;
          for (int k = 0; k < 1000; ++k) work = work + k;
          running->fetch_sub(1);
          return i;
        },
        {.threads = 3, .ahead = 20});
    auto at = data.iterate();
    for (int i = 0; i < round % 7; ++i) at.next();
    at = data.iterate();
    CHECK(running->load() == 0);
  }
}

TEST_CASE("a map has at least one thread and a bounded number of elements ahead") {
  const auto same = [](int i) { return i; };
  CHECK(code_of([&] { return range(1).map(same, {.threads = 0}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return range(1).map(same, {.threads = 2, .ahead = -1}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return range(1).map(same, {.threads = 2, .ahead = 1 << 30}); }) == df::Code::invalid_argument);
}
