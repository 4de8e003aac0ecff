#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include "catch.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("an event that is set is not waited for", "[pool_event]") {
  PoolEvent event;
  CHECK_FALSE(event.is_set());
  event.set();
  CHECK(event.is_set());
  event.wait_blocking();
  InlinePool().wait(event);
  WorkStealingPool(1).wait(event);
  ElasticPool().wait(event);
}

TEST_CASE("an outside thread waits until the event is set", "[pool_event]") {
  WorkStealingPool pool(2);
  for (int round = 0; round < 500; ++round) {
    PoolEvent event;
    int written = 0;
    pool.schedule([&] {
      written = round;
      event.set();
    });
    pool.wait(event);
    if (written != round) FAIL("round " << round);
  }
  SUCCEED("all rounds");
}

TEST_CASE("workers that wait run the tasks that they wait for", "[pool_event]") {
  for (const int threads : {1, 2, 3}) {
    WorkStealingPool pool(threads, {.spin = Duration::zero()});
    PoolEvent all;
    std::atomic<int> left{4};
    // As many tasks as there are threads, and more, wait for tasks that are queued after them.
    for (int i = 0; i < 4; ++i) {
      pool.schedule([&] {
        PoolEvent event;
        pool.schedule([&] {
          PoolEvent inner;
          pool.schedule([&] { inner.set(); });
          pool.wait(inner);
          event.set();
        });
        pool.wait(event);
        if (--left == 0) all.set();
      });
    }
    pool.wait(all);
  }
  SUCCEED("no pool stalled");
}

TEST_CASE("a worker that is parked in a wait wakes for a task that comes from outside", "[pool_event]") {
  WorkStealingPool pool(1, {.spin = Duration::zero()});
  for (int round = 0; round < 200; ++round) {
    PoolEvent event, waits, ended;
    pool.schedule([&] {
      waits.set();
      pool.wait(event);
      ended.set();
    });
    pool.wait(waits);
    // The only worker is in its wait, or about to be: no other thread can run the tasks below.
    std::atomic<int> left{3};
    PoolEvent ran;
    for (int i = 0; i < 3; ++i) {
      pool.schedule([&] {
        if (--left == 0) ran.set();
      });
    }
    pool.wait(ran);
    event.set();
    pool.wait(ended);
  }
  SUCCEED("no wake-up was lost");
}

TEST_CASE("a worker that waits helps a loop of another thread", "[pool_event]") {
  WorkStealingPool pool(2, {.spin = Duration::zero(), .min_split_ns = 0});
  // One thread waits for an event at a time.
  PoolEvent events[2], ended;
  std::atomic<int> waiting{0};
  for (PoolEvent& event : events) {
    pool.schedule([&] {
      ++waiting;
      pool.wait(event);
      if (--waiting == 0) ended.set();
    });
  }
  while (waiting < 2) std::this_thread::yield();
  std::atomic<int> inside{0};
  // Each of two ranges waits for the other.
  pool.parallel_for(2, 1.0, [&](std::int64_t begin, std::int64_t end) {
    inside += static_cast<int>(end - begin);
    while (inside < 2) std::this_thread::yield();
  });
  for (PoolEvent& event : events) event.set();
  pool.wait(ended);
  CHECK(inside == 2);
}

TEST_CASE("the inline pool runs what is queued, then waits", "[pool_event]") {
  InlinePool pool;
  int ran = 0;
  std::thread other;
  pool.schedule([&] {
    PoolEvent queued;
    pool.schedule([&] {
      ++ran;
      queued.set();
    });
    pool.wait(queued);
    PoolEvent from_outside;
    other = std::thread([&] { from_outside.set(); });
    pool.wait(from_outside);
    ++ran;
  });
  other.join();
  CHECK(ran == 2);
}

TEST_CASE("a task that runs in a wait may destroy the pool", "[pool_event]") {
  auto pool = std::make_unique<WorkStealingPool>(1);
  PoolEvent ended;
  pool->schedule([&] {
    PoolEvent event;
    pool->schedule([&] {
      pool.reset();
      event.set();
    });
    pool->wait(event);
    ended.set();
  });
  ended.wait_blocking();
  CHECK(pool == nullptr);
}

TEST_CASE("events on the stack, set by all kinds of threads, many times over", "[pool_event][stress]") {
  for (const int threads : {1, 2, 4}) {
    WorkStealingPool pool(threads, {.spin = std::chrono::microseconds(threads == 2 ? 5 : 0)});
    WorkStealingPool other(2, {.spin = Duration::zero()});
    std::atomic<int> finished{0};
    constexpr int rounds = 300;
    const auto chain = [&](ThreadPool& setter) {
      PoolEvent event;
      setter.schedule([&] { event.set(); });
      pool.wait(event);
    };
    std::function<void(int)> nested = [&](int depth) {
      chain(other);
      if (depth == 0) return chain(pool);
      PoolEvent event;
      pool.schedule([&] {
        nested(depth - 1);
        event.set();
      });
      pool.wait(event);
    };
    std::vector<std::thread> outside;
    for (int t = 0; t < 2; ++t) {
      outside.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) {
          PoolEvent event;
          pool.schedule([&] {
            nested(2);
            ++finished;
            event.set();
          });
          pool.wait(event);
        }
      });
    }
    for (std::thread& thread : outside) thread.join();
    CHECK(finished == 2 * rounds);
  }
}
