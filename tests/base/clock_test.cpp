#include <dflow/base/clock.hpp>

#include "catch.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using namespace std::chrono_literals;

TEST_CASE("a virtual clock stands still until it is moved", "[clock]") {
  VirtualClock clock(100s);
  const auto start = clock.now();
  CHECK(start.time_since_epoch() == 0ns);
  CHECK(clock.wall_now().time_since_epoch() == 100s);
  clock.advance(5ms);
  CHECK(clock.now() - start == 5ms);
  CHECK(clock.wall_now().time_since_epoch() == 100s + 5ms);
}

TEST_CASE("virtual timers run in order of time, then of scheduling, at their own time", "[clock]") {
  VirtualClock clock;
  std::string order;
  std::vector<Duration> times;
  const auto note = [&](char c) {
    return [&, c] {
      order += c;
      times.push_back(clock.now().time_since_epoch());
    };
  };
  clock.schedule_after(20ms, note('c'));
  clock.schedule_after(10ms, note('a'));
  clock.schedule_after(20ms, note('d'));
  clock.schedule_after(15ms, note('b'));
  clock.schedule_after(30ms, note('e'));
  CHECK(clock.next_deadline().time_since_epoch() == 10ms);
  clock.advance(25ms);
  CHECK(order == "abcd");
  CHECK(times == std::vector<Duration>{10ms, 15ms, 20ms, 20ms});
  CHECK(clock.now().time_since_epoch() == 25ms);
}

TEST_CASE("a callback may schedule and cancel", "[clock]") {
  VirtualClock clock;
  int ticks = 0;
  TimerId victim{};
  UniqueFunction<void()> unused;
  struct Ticker {
    VirtualClock& clock;
    int& ticks;
    void operator()() const {
      ++ticks;
      clock.schedule_after(10ms, Ticker{clock, ticks});
    }
  };
  clock.schedule_after(10ms, Ticker{clock, ticks});
  bool ran_victim = false;
  victim = clock.schedule_after(35ms, [&] { ran_victim = true; });
  clock.schedule_after(30ms, [&] { CHECK(clock.cancel(victim)); });
  clock.advance(100ms);
  CHECK(ticks == 10);
  CHECK_FALSE(ran_victim);
  CHECK_FALSE(clock.cancel(victim));
}

TEST_CASE("a timer in the past runs at the next move, never inside schedule_at", "[clock]") {
  VirtualClock clock;
  clock.advance(1s);
  bool ran = false;
  clock.schedule_at(Clock::time_point(1ms), [&] { ran = true; });
  CHECK_FALSE(ran);
  clock.advance(0ns);
  CHECK(ran);
  CHECK(clock.now().time_since_epoch() == 1s);
}

TEST_CASE("advance_to_next runs one timer", "[clock]") {
  VirtualClock clock;
  CHECK_FALSE(clock.advance_to_next());
  int ran = 0;
  clock.schedule_after(3h, [&] { ++ran; });
  clock.schedule_after(3h, [&] { ++ran; });
  CHECK(clock.advance_to_next());
  CHECK(ran == 1);
  CHECK(clock.now().time_since_epoch() == 3h);
  CHECK(clock.advance_to_next());
  CHECK(clock.next_deadline() == Clock::never);
}

TEST_CASE("a deadline that overflows is never", "[clock]") {
  VirtualClock clock;
  clock.advance(1s);
  CHECK(clock.after(Duration::max()) == Clock::never);
  CHECK(clock.after(1s).time_since_epoch() == 2s);
}

TEST_CASE("the real clock moves on and runs timers in order", "[clock]") {
  std::string order;
  std::atomic<bool> done{false};
  RealClock clock;
  const auto start = clock.now();
  // From a callback, so that both are there before the clock looks for the next.
  clock.schedule_after(0ms, [&] {
    clock.schedule_after(20ms, [&] {
      order += 'b';
      done.store(true);
      done.notify_one();
    });
    clock.schedule_after(1ms, [&] { order += 'a'; });
  });
  clock.schedule_at(Clock::never, [&] { order += 'x'; });
  done.wait(false);
  CHECK(order == "ab");
  CHECK(clock.now() - start >= 20ms);
  CHECK(clock.wall_now().time_since_epoch() > std::chrono::hours(24 * 365 * 50));
}

TEST_CASE("a cancelled real timer does not run and lets go of what it holds", "[clock]") {
  RealClock clock;
  auto held = std::make_shared<int>(1);
  const TimerId id = clock.schedule_after(1h, [held] {});
  CHECK(held.use_count() == 2);
  CHECK(clock.cancel(id));
  CHECK(held.use_count() == 1);
  CHECK_FALSE(clock.cancel(id));
}

TEST_CASE("many threads schedule and cancel at once", "[clock]") {
  std::atomic<int> ran{0};
  std::atomic<int> cancelled{0};
  {
    RealClock clock;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) {
          const TimerId id = clock.schedule_after(std::chrono::microseconds((i * 7 + t) % 50), [&] { ++ran; });
          if (i % 3 == 0 && clock.cancel(id)) ++cancelled;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    std::atomic<bool> last{false};
    clock.schedule_after(1ms, [&] {
      last.store(true);
      last.notify_one();
    });
    last.wait(false);
  }
  CHECK(ran + cancelled == 800);
}
