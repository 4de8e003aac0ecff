#include <dflow/base/status.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {
/// Estimated so high that every loop is split as far as it goes.
constexpr double costly = 1e6;

class CountDown {
 public:
  explicit CountDown(int count) : left_(count) {}
  void arrive() {
    if (left_.fetch_sub(1) == 1) left_.notify_all();
  }
  void wait() const {
    for (int left = left_.load(); left > 0; left = left_.load()) left_.wait(left);
  }

 private:
  std::atomic<int> left_;
};

void raise_to(std::atomic<int>& peak, int value) {
  for (int seen = peak.load(); seen < value && !peak.compare_exchange_weak(seen, value);) {
  }
}
}  // namespace

TEST_CASE("a pool runs every task once", "[thread_pool]") {
  for (const int threads : {1, 2, 5}) {
    WorkStealingPool pool(threads);
    CHECK(pool.num_threads() == threads);
    constexpr int tasks = 5000;
    std::vector<std::atomic<int>> runs(tasks);
    CountDown done(tasks);
    for (int i = 0; i < tasks; ++i) {
      pool.schedule([&, i] {
        ++runs[static_cast<std::size_t>(i)];
        done.arrive();
      });
    }
    done.wait();
    for (const auto& count : runs) {
      if (count != 1) FAIL("a task ran " << count << " times");
    }
  }
}

TEST_CASE("tasks may schedule tasks", "[thread_pool]") {
  WorkStealingPool pool(3);
  constexpr int depth = 12;
  CountDown done((1 << depth) - 1);
  struct Spawn {
    ThreadPool& pool;
    CountDown& done;
    int depth;
    void operator()() const {
      if (depth > 1) {
        pool.schedule(Spawn{pool, done, depth - 1});
        pool.schedule(Spawn{pool, done, depth - 1});
      }
      done.arrive();
    }
  };
  pool.schedule(Spawn{pool, done, depth});
  done.wait();
  SUCCEED("all spawned tasks ran");
}

TEST_CASE("the destructor runs what is queued, also what that schedules", "[thread_pool]") {
  std::atomic<int> ran{0};
  {
    WorkStealingPool pool(2);
    for (int i = 0; i < 200; ++i) {
      pool.schedule([&] {
        ++ran;
        pool.schedule([&] { ++ran; });
      });
    }
  }
  CHECK(ran == 400);
}

TEST_CASE("a parked pool wakes for a task", "[thread_pool]") {
  ThreadPoolOptions options;
  options.spin = Duration::zero();
  WorkStealingPool pool(2, options);
  for (int i = 0; i < 200; ++i) {
    CountDown done(1);
    pool.schedule([&] { done.arrive(); });
    done.wait();
  }
  SUCCEED("no wake-up was lost");
}

TEST_CASE("parallel_for has four ranges for each thread, which differ by a block at most", "[thread_pool]") {
  WorkStealingPool pool(4);
  for (const auto& [total, expected] : {std::pair{5, 5}, {16, 16}, {17, 9}, {32, 16}, {33, 11}, {64, 16}}) {
    std::atomic<int> ranges{0};
    pool.parallel_for(total, costly, [&](std::int64_t, std::int64_t) { ++ranges; });
    CHECK(ranges == expected);
  }
}

TEST_CASE("parallel_for covers each item once, on aligned ranges", "[thread_pool]") {
  WorkStealingPool pool(4);
  for (const std::int64_t total : {1, 2, 3, 7, 64, 1000, 4097}) {
    for (const std::int64_t align : {1, 8, 100}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(total));
      std::atomic<int> misaligned{0};
      pool.parallel_for(
          total, costly,
          [&](std::int64_t begin, std::int64_t end) {
            if (begin % align != 0 || (end % align != 0 && end != total) || begin >= end) ++misaligned;
            for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
          },
          align);
      CHECK(misaligned == 0);
      for (const auto& count : visits) {
        if (count != 1) FAIL("total " << total << " align " << align << ": an item was visited " << count << " times");
      }
    }
  }
}

TEST_CASE("an empty loop calls nothing and a cheap one is one call in the caller", "[thread_pool]") {
  WorkStealingPool pool(4);
  int calls = 0;
  pool.parallel_for(0, costly, [&](std::int64_t, std::int64_t) { ++calls; });
  pool.parallel_for(-5, costly, [&](std::int64_t, std::int64_t) { ++calls; });
  CHECK(calls == 0);
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(1000, 1.0, [&](std::int64_t begin, std::int64_t end) {
    ++calls;
    CHECK(begin == 0);
    CHECK(end == 1000);
    CHECK(std::this_thread::get_id() == caller);
  });
  CHECK(calls == 1);
}

TEST_CASE("extreme sizes and costs are covered without overflow", "[thread_pool]") {
  WorkStealingPool pool(3);
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const double cost :
       {1e-300, 1.0, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), -1.0}) {
    for (const std::int64_t align : {std::int64_t{1}, std::int64_t{4096}, largest}) {
      std::atomic<std::uint64_t> covered{0};
      pool.parallel_for(
          largest, cost,
          [&](std::int64_t begin, std::int64_t end) { covered += static_cast<std::uint64_t>(end - begin); }, align);
      CHECK(covered == static_cast<std::uint64_t>(largest));
    }
  }
}

TEST_CASE("workers help a loop", "[thread_pool]") {
  WorkStealingPool pool(2);
  // Each of two ranges waits for the other: only two threads at once can finish.
  CountDown both(2);
  pool.parallel_for(2, costly, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) both.arrive();
    both.wait();
  });
  SUCCEED("two threads took part");
}

TEST_CASE("no loop of an outside caller has more threads than the pool", "[thread_pool]") {
  for (const int threads : {2, 3}) {
    WorkStealingPool pool(threads);
    std::atomic<int> busy{0};
    std::atomic<int> peak{0};
    for (int round = 0; round < 50; ++round) {
      pool.parallel_for(64, costly, [&](std::int64_t, std::int64_t) {
        raise_to(peak, ++busy);
        for (int i = 0; i < 2000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        --busy;
      });
    }
    CHECK(peak <= threads);
  }
}

TEST_CASE("loops nest, in tasks and in loops", "[thread_pool]") {
  WorkStealingPool pool(3);
  std::atomic<std::int64_t> sum{0};
  CountDown done(20);
  for (int t = 0; t < 20; ++t) {
    pool.schedule([&] {
      if (!pool.current_thread_is_worker()) sum -= 1000000;
      pool.parallel_for(10, costly, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          pool.parallel_for(10, costly, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
        }
      });
      done.arrive();
    });
  }
  done.wait();
  CHECK(sum == 2000);
  CHECK_FALSE(pool.current_thread_is_worker());
}

TEST_CASE("the first exception of a body comes out when no body runs any more", "[thread_pool]") {
  WorkStealingPool pool(4);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> inside{0};
    try {
      pool.parallel_for(100, costly, [&](std::int64_t begin, std::int64_t) {
        ++inside;
        struct Leave {
          std::atomic<int>& inside;
          ~Leave() { --inside; }
        } leave{inside};
        if (begin >= 10) throw Error(Status::aborted("body failed"));
      });
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      if (error.status() != Status::aborted("body failed") || inside != 0) FAIL("round " << round);
    }
  }
  std::atomic<int> items{0};
  pool.parallel_for(100, costly, [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
  CHECK(items == 100);
}

TEST_CASE("many outside threads use one pool at once", "[thread_pool]") {
  WorkStealingPool pool(2);
  std::atomic<std::int64_t> items{0};
  std::atomic<int> tasks{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        if (round % 3 == 0) pool.schedule([&] { ++tasks; });
        if (t == 3) {
          const ThreadPool::Seat seat(pool);
          pool.run_one();
        }
        pool.parallel_for(37, costly, [&](std::int64_t begin, std::int64_t end) { items += end - begin; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK(items == 4 * 200 * 37);
  while (tasks < 4 * 67) pool.run_one();
  CHECK(tasks == 4 * 67);
}

TEST_CASE("with its seat taken by a caller that only waits, a pool still makes progress", "[thread_pool]") {
  for (const int threads : {1, 2, 3}) {
    WorkStealingPool pool(threads);
    const ThreadPool::Seat seat(pool);
    const ThreadPool::Seat again(pool);
    for (int round = 0; round < 100; ++round) {
      CountDown done(4);
      for (int i = 0; i < 4; ++i) pool.schedule([&] { done.arrive(); });
      done.wait();
    }
  }
  SUCCEED("all tasks ran");
}

TEST_CASE("a worker of one pool may use another", "[thread_pool]") {
  WorkStealingPool outer(2);
  WorkStealingPool inner(2);
  std::atomic<int> items{0};
  CountDown done(50);
  for (int i = 0; i < 50; ++i) {
    outer.schedule([&] {
      inner.parallel_for(8, costly,
                         [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
      if (!outer.current_thread_is_worker() || inner.current_thread_is_worker()) items = -100000;
      done.arrive();
    });
  }
  done.wait();
  CHECK(items == 400);
}

TEST_CASE("a pool of no threads is refused", "[thread_pool]") {
  CHECK_THROWS_AS(WorkStealingPool(0), Error);
  CHECK_THROWS_AS(WorkStealingPool(-1), Error);
  CHECK(available_cores() >= 1);
}

TEST_CASE("a pool of more threads than can be is refused at once", "[thread_pool]") {
  for (const int threads : {WorkStealingPool::max_threads + 1, std::numeric_limits<int>::max()}) {
    try {
      WorkStealingPool pool(threads);
      FAIL("made with " << threads);
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
    }
  }
}

TEST_CASE("a pool may be destroyed by a task of its own", "[thread_pool]") {
  for (const int threads : {1, 2, 4}) {
    for (int round = 0; round < 50; ++round) {
      auto pool = std::make_unique<WorkStealingPool>(threads);
      CountDown all(5);
      PoolEvent queued;
      pool->schedule([&] {
        queued.wait_blocking();
        pool.reset();
        all.arrive();
      });
      for (int i = 0; i < 4; ++i) pool->schedule([&] { all.arrive(); });
      queued.set();
      all.wait();
      CHECK(pool == nullptr);
    }
  }
}

TEST_CASE("a pool may be destroyed by a task that an outside thread runs", "[thread_pool]") {
  for (int round = 0; round < 20; ++round) {
    auto pool = std::make_unique<WorkStealingPool>(1);
    PoolEvent gate, blocked;
    pool->schedule([&] {
      blocked.set();
      gate.wait_blocking();
    });
    blocked.wait_blocking();
    pool->schedule([&] {
      gate.set();
      pool.reset();
    });
    CHECK(pool->run_one());
    CHECK(pool == nullptr);
    // The thread has no seat in a pool that is gone.
    WorkStealingPool other(2);
    CHECK_FALSE(other.run_one());
  }
}

TEST_CASE("with a threshold of 0 every loop is split among all threads", "[thread_pool]") {
  ThreadPoolOptions options;
  options.min_split_ns = 0;
  WorkStealingPool pool(3, options);
  CHECK(pool.min_split_ns() == 0);
  for (const double cost : {0.0, 1e-9, 1.0, 1e9}) {
    // Each of three ranges waits for the others.
    CountDown all(3);
    pool.parallel_for(3, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) all.arrive();
      all.wait();
    });
  }
  options.min_split_ns = 1e12;
  WorkStealingPool reluctant(3, options);
  int calls = 0;
  reluctant.parallel_for(1000, 1e8, [&](std::int64_t, std::int64_t) { ++calls; });
  CHECK(calls == 1);
  options.min_split_ns = std::numeric_limits<double>::infinity();
  WorkStealingPool never(3, options);
  for (const double cost : {1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    calls = 0;
    never.parallel_for(1000, cost, [&](std::int64_t, std::int64_t) { ++calls; });
    CHECK(calls == 1);
  }
}

TEST_CASE("tasks and loops at random, many times over", "[thread_pool][stress]") {
  for (const int threads : {1, 2, 4}) {
    ThreadPoolOptions options;
    options.spin = std::chrono::microseconds(5);
    WorkStealingPool pool(threads, options);
    for (int round = 0; round < 300; ++round) {
      CountDown done(16);
      std::vector<int> owned(64, 0);
      std::atomic<int> total{0};
      for (int i = 0; i < 16; ++i) {
        pool.schedule([&, i] {
          if (i % 4 == 0) {
            pool.parallel_for(64, costly,
                              [&](std::int64_t begin, std::int64_t end) { total += static_cast<int>(end - begin); });
          }
          done.arrive();
        });
      }
      // Plain writes: ThreadSanitizer checks that the loop's end orders them before the reads.
      pool.parallel_for(64, costly, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) owned[static_cast<std::size_t>(i)] += static_cast<int>(i);
      });
      int sum = 0;
      for (const int value : owned) sum += value;
      done.wait();
      if (sum != 2016 || total != 256) FAIL("round " << round << " with " << threads << " threads");
      if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  SUCCEED("all rounds added up");
}

namespace {

/// A pool as a user writes it: the three pure functions, around threads and a queue.
class OwnPool final : public ThreadPool {
 public:
  explicit OwnPool(int threads, bool drops_tasks = false) : drops_tasks_(drops_tasks) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  ~OwnPool() override {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }
  int num_threads() const noexcept override { return static_cast<int>(threads_.size()); }
  void schedule(Task task) override {
    if (drops_tasks_) return;
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  bool current_thread_is_worker() const noexcept override {
    return std::ranges::any_of(
        threads_, [](const std::jthread& thread) { return thread.get_id() == std::this_thread::get_id(); });
  }

 private:
  void work(const std::stop_token& stop) {
    for (;;) {
      Task task;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !tasks_.empty(); })) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  const bool drops_tasks_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace

TEST_CASE("a pool of the three pure functions splits loops among its threads", "[thread_pool]") {
  OwnPool pool(3);
  // Two bodies meet, which they do in two threads alone.
  std::atomic<int> inside{0};
  pool.parallel_for(8, 1e6, [&](std::int64_t, std::int64_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  for (const std::int64_t total : {2, 7, 1000, 100003}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(total));
    pool.parallel_for(total, 1e5, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
    });
    CHECK(std::ranges::all_of(calls, [](const std::atomic<int>& each) { return each == 1; }));
  }
  std::atomic<std::int64_t> sum{0};
  pool.parallel_for(std::numeric_limits<std::int64_t>::max(), 1,
                    [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  CHECK(sum == std::numeric_limits<std::int64_t>::max());
  // In loops and in tasks.
  std::atomic<int> items{0};
  pool.parallel_for(10, 1e6, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      pool.parallel_for(10, 1e6, [&](std::int64_t from, std::int64_t to) { items += static_cast<int>(to - from); });
    }
  });
  CHECK(items == 100);
  for (int round = 0; round < 3; ++round) {
    CHECK_THROWS_WITH(pool.parallel_for(100, 1e6,
                                        [&](std::int64_t begin, std::int64_t) {
                                          if (begin > 20) throw std::runtime_error("no");
                                        }),
                      "no");
  }
}

TEST_CASE("a pool that takes no more tasks leaves a loop to its caller", "[thread_pool]") {
  class FullPool final : public ThreadPool {
   public:
    int num_threads() const noexcept override { return 4; }
    void schedule(Task task) override {
      if (!tasks.empty()) throw std::runtime_error("the queue is full");
      tasks.push_back(std::move(task));
    }
    bool current_thread_is_worker() const noexcept override { return false; }
    std::deque<Task> tasks;
  } pool;
  int items = 0;
  for (int round = 0; round < 3; ++round) {
    pool.parallel_for(100, 1e6, [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
  }
  CHECK(items == 300);
  REQUIRE(pool.tasks.size() == 1);  // of the first loop, which has ended
  Task late = std::move(pool.tasks.front());
  late();
  CHECK(items == 300);
  CHECK(pool.tasks.size() == 1);
}

TEST_CASE("a loop does not wait for tasks that its pool drops", "[thread_pool]") {
  OwnPool pool(3, true);
  int items = 0;
  pool.parallel_for(100, 1e6, [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
  CHECK(items == 100);
}

TEST_CASE("the inline pool runs a task before schedule returns", "[inline_pool]") {
  InlinePool pool;
  CHECK(pool.num_threads() == 1);
  bool ran = false;
  pool.schedule([&] {
    ran = true;
    CHECK(pool.current_thread_is_worker());
  });
  CHECK(ran);
  CHECK_FALSE(pool.current_thread_is_worker());
  CHECK_FALSE(pool.run_one());
}

TEST_CASE("the inline pool queues what tasks schedule, in order and without recursion", "[inline_pool]") {
  InlinePool pool;
  std::string order;
  pool.schedule([&] {
    pool.schedule([&] { order += 'b'; });
    pool.schedule([&] { order += 'c'; });
    order += 'a';
  });
  CHECK(order == "abc");

  struct Chain {
    InlinePool& pool;
    int& left;
    void operator()() const {
      if (--left > 0) pool.schedule(Chain{pool, left});
    }
  };
  int left = 1'000'000;
  pool.schedule(Chain{pool, left});
  CHECK(left == 0);
}

TEST_CASE("inline pools do not mix their queues, nor do threads", "[inline_pool]") {
  InlinePool first;
  InlinePool second;
  std::string order;
  first.schedule([&] {
    first.schedule([&] { order += '3'; });
    second.schedule([&] { order += '1'; });
    order += '2';
  });
  CHECK(order == "123");
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) first.schedule([&] { first.schedule([&] { ++ran; }); });
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ran == 400);
}

TEST_CASE("a loop on the inline pool is one call", "[inline_pool]") {
  InlinePool pool;
  std::vector<std::pair<std::int64_t, std::int64_t>> calls;
  pool.parallel_for(10, costly, [&](std::int64_t begin, std::int64_t end) { calls.emplace_back(begin, end); });
  CHECK(calls == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 10}});
  CHECK_THROWS_AS(pool.parallel_for(1, 1.0, [](std::int64_t, std::int64_t) { throw std::runtime_error("x"); }),
                  std::runtime_error);
}
