#include <dflow/base/status.hpp>
#include <dflow/base/threads/elastic_pool.hpp>

#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("an elastic pool of one runs tasks one after the other in their order", "[elastic_pool]") {
  for (const Duration idle : {Duration::zero(), Duration(std::chrono::seconds(10)), Duration::max()}) {
    std::vector<int> order;
    {
      ElasticPool pool({.max_threads = 1, .idle = idle});
      CHECK(pool.num_threads() == 1);
      CHECK(pool.num_threads_now() == 0);
      for (int i = 0; i < 1000; ++i) {
        pool.schedule([&, i] { order.push_back(i); });
        if (pool.num_threads_now() > 1) FAIL("a second thread");
      }
    }
    CHECK(order.size() == 1000);
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_CASE("an elastic pool has no thread before its first task", "[elastic_pool]") {
  ElasticPool pool;
  CHECK(pool.num_threads_now() == 0);
  CHECK_FALSE(pool.run_one());
  PoolEvent ran;
  pool.schedule([&] {
    CHECK(pool.current_thread_is_worker());
    ran.set();
  });
  pool.wait(ran);
  CHECK(pool.num_threads_now() == 1);
  CHECK_FALSE(pool.current_thread_is_worker());
}

TEST_CASE("an elastic pool grows while its tasks block, up to its limit", "[elastic_pool]") {
  std::atomic<int> ran{0}, blocked{0};
  PoolEvent gates[4];
  {
    ElasticPool pool({.max_threads = 4});
    for (PoolEvent& gate : gates) {
      pool.schedule([&] {
        ++blocked;
        pool.wait(gate);
        ++ran;
      });
    }
    while (blocked < 4) std::this_thread::yield();
    CHECK(pool.num_threads_now() == 4);
    for (int i = 0; i < 10; ++i) pool.schedule([&] { ++ran; });
    CHECK(pool.num_threads_now() == 4);
    CHECK(ran == 0);
    for (PoolEvent& gate : gates) gate.set();
  }
  CHECK(ran == 14);
}

TEST_CASE("a task that waits for later ones gets them run", "[elastic_pool]") {
  ElasticPool pool({.max_threads = 2});
  for (int round = 0; round < 200; ++round) {
    PoolEvent all;
    pool.schedule([&] {
      PoolEvent inner;
      pool.schedule([&] { inner.set(); });
      pool.wait(inner);
      all.set();
    });
    pool.wait(all);
  }
  SUCCEED("all rounds");
}

TEST_CASE("an idle thread ends, and another one is started when there is work", "[elastic_pool]") {
  ElasticPool pool({.idle = Duration::zero()});
  for (int round = 0; round < 100; ++round) {
    PoolEvent ran;
    pool.schedule([&] { ran.set(); });
    pool.wait(ran);
    while (pool.num_threads_now() > 0) std::this_thread::yield();
  }
  SUCCEED("a hundred threads came and went");
}

TEST_CASE("loops are one call on an elastic pool, whatever they cost", "[elastic_pool]") {
  ElasticPool pool;
  for (const double cost : {1.0, 1e300, std::numeric_limits<double>::infinity()}) {
    int calls = 0;
    pool.parallel_for(1000, cost, [&](std::int64_t begin, std::int64_t end) {
      ++calls;
      CHECK(begin == 0);
      CHECK(end == 1000);
    });
    CHECK(calls == 1);
  }
  CHECK(pool.num_threads_now() == 0);
}

TEST_CASE("the caller takes part by run_one", "[elastic_pool]") {
  PoolEvent gate, blocked;
  ElasticPool pool({.max_threads = 1});
  pool.schedule([&] {
    blocked.set();
    gate.wait_blocking();
  });
  pool.wait(blocked);
  const auto caller = std::this_thread::get_id();
  bool ran_here = false;
  pool.schedule([&] { ran_here = std::this_thread::get_id() == caller; });
  CHECK(pool.run_one());
  CHECK(ran_here);
  CHECK_FALSE(pool.run_one());
  gate.set();
}

TEST_CASE("an elastic pool may be destroyed by a task of its own", "[elastic_pool]") {
  for (const int max_threads : {1, 3}) {
    for (int round = 0; round < 50; ++round) {
      auto pool = std::make_unique<ElasticPool>(ElasticPoolOptions{.max_threads = max_threads});
      auto shared = std::make_shared<int>(0);
      PoolEvent queued, all;
      std::atomic<int> left{6};
      const auto arrive = [&left, &all] {
        if (--left == 0) all.set();
      };
      pool->schedule([&, arrive] {
        queued.wait_blocking();
        pool.reset();
        arrive();
      });
      for (int i = 0; i < 5; ++i) pool->schedule([shared, arrive] { arrive(); });
      queued.set();
      all.wait_blocking();
      CHECK(pool == nullptr);
    }
  }
}

TEST_CASE("an elastic pool may be destroyed by a task that an outside thread runs", "[elastic_pool]") {
  auto pool = std::make_unique<ElasticPool>(ElasticPoolOptions{.max_threads = 1});
  PoolEvent gate, blocked;
  pool->schedule([&] {
    blocked.set();
    gate.wait_blocking();
  });
  pool->wait(blocked);
  pool->schedule([&] {
    gate.set();
    pool.reset();
  });
  CHECK(pool->run_one());
  CHECK(pool == nullptr);
}

TEST_CASE("an elastic pool of no threads, or of too many, is refused", "[elastic_pool]") {
  for (const int threads : {0, -1, WorkStealingPool::max_threads + 1, std::numeric_limits<int>::max()}) {
    try {
      ElasticPool pool({.max_threads = threads});
      FAIL("made with " << threads);
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
    }
  }
}

TEST_CASE("many threads schedule on an elastic pool while threads come and go", "[elastic_pool][stress]") {
  for (const int max_threads : {1, 2, 8}) {
    std::atomic<int> ran{0};
    {
      ElasticPool pool({.max_threads = max_threads, .idle = std::chrono::microseconds(20)});
      std::vector<std::thread> submitters;
      for (int t = 0; t < 4; ++t) {
        submitters.emplace_back([&, t] {
          for (int i = 0; i < 300; ++i) {
            pool.schedule([&, i] {
              if (i % 5 == 0) pool.schedule([&] { ++ran; });
              ++ran;
            });
            if (t == 0 && i % 7 == 0) pool.run_one();
            if (i % 50 == 0) {
              PoolEvent event;
              pool.schedule([&] { event.set(); });
              pool.wait(event);
            }
          }
        });
      }
      for (std::thread& thread : submitters) thread.join();
    }
    CHECK(ran == 4 * 360);
  }
}
