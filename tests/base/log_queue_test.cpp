#include <dflow/base/threads/log_queue.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/standard_error.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using dflow::detail::LogQueue;
using dflow::detail::LogQueueOptions;
using namespace std::chrono_literals;

namespace {

/// The lines of a log that a test can hold up.
class PipeReader {
 public:
  std::function<void(std::string_view)> write() {
    return [this](std::string_view line) {
      if (running_.exchange(true)) is_alone_ = false;
      begun_.store(true);
      begun_.notify_all();
      is_held_.wait(true);
      {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(line);
        threads_.push_back(std::this_thread::get_id());
      }
      running_ = false;
    };
  }
  void hold() { is_held_ = true; }
  void release() {
    is_held_ = false;
    is_held_.notify_all();
  }
  void wait_until_begun() { begun_.wait(false); }

  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  std::size_t count(std::string_view text) {
    std::size_t found = 0;
    for (const std::string& line : lines()) found += contains(line, text) ? 1 : 0;
    return found;
  }
  /// Whether another thread has got each line, and never two at once.
  bool is_elsewhere_and_alone() {
    const std::lock_guard lock(mutex_);
    bool is_elsewhere = is_alone_;
    for (const std::thread::id id : threads_) is_elsewhere &= id != std::this_thread::get_id();
    return is_elsewhere;
  }

 private:
  std::atomic<bool> is_held_{false}, begun_{false}, running_{false}, is_alone_{true};
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::vector<std::thread::id> threads_;
};

std::shared_ptr<LogQueue> queue_to(PipeReader& reader, LogQueueOptions options = {}) {
  options.write = reader.write();
  return std::make_shared<LogQueue>(std::move(options));
}

/// A pool that keeps its tasks until it is told to run one.
class KeepingPool final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return 1; }
  void schedule(Task task) override { tasks_.push_back(std::move(task)); }
  bool run_one() override {
    if (tasks_.empty()) return false;
    Task task = std::move(tasks_.back());
    tasks_.pop_back();
    task();
    return true;
  }
  bool current_thread_is_worker() const noexcept override { return false; }

 private:
  std::vector<Task> tasks_;
};

}  // namespace

TEST_CASE("another thread writes the lines of a log, each alone and in their order", "[log]") {
  PipeReader reader;
  const auto queue = queue_to(reader);
  for (int i = 0; i < 500; ++i) queue->add("line " + std::to_string(i));
  queue->close();
  const std::vector<std::string> lines = reader.lines();
  REQUIRE(lines.size() == 500);
  for (int i = 0; i < 500; ++i) CHECK(lines[static_cast<std::size_t>(i)] == "line " + std::to_string(i));
  CHECK(reader.is_elsewhere_and_alone());
}

TEST_CASE("several threads that log share one writer", "[log]") {
  PipeReader reader;
  const auto queue = queue_to(reader, {.patience = 60s});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        queue->add("a line");
        queue->flush();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(reader.count("a line") == 400);
  CHECK(reader.is_elsewhere_and_alone());
  queue->close();
}

TEST_CASE("nobody who logs waits for a reader that has stopped, and the dropped lines are counted", "[log]") {
  PipeReader reader;
  reader.hold();
  const auto queue = queue_to(reader, {.max_lines = 10, .patience = 60s});
  queue->add("first");
  reader.wait_until_begun();
  for (int i = 0; i < 100; ++i) queue->add("line " + std::to_string(i));
  reader.release();
  queue->flush();
  queue->add("last");
  queue->close();
  const std::vector<std::string> lines = reader.lines();
  REQUIRE(lines.size() == 13);
  CHECK(lines[0] == "first");
  CHECK(lines[10] == "line 9");
  CHECK(lines[11] == "90 lines were dropped");
  CHECK(lines[12] == "last");
}

TEST_CASE("the bytes of waiting lines are limited, too", "[log]") {
  PipeReader reader;
  reader.hold();
  const auto queue = queue_to(reader, {.max_bytes = 10'000, .patience = 60s});
  queue->add("first");
  reader.wait_until_begun();
  for (int i = 0; i < 20; ++i) queue->add(std::string(1000, 'x'));
  reader.release();
  queue->close();
  CHECK(reader.count("xxx") == 10);
  CHECK(reader.count("10 lines were dropped") == 1);
}

TEST_CASE("a line that has no room at all is counted, and the next ones are written", "[log]") {
  PipeReader reader;
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.write = reader.write(), .max_bytes = 100});
  for (int i = 0; i < 2; ++i) {
    queue->add(std::string(200, 'a'));
    queue->flush();
    queue->add("short");
    queue->flush();
  }
  CHECK(reader.lines() == std::vector<std::string>{"1 lines were dropped", "short", "1 lines were dropped", "short"});
}

TEST_CASE("a line is cut, and has no control characters", "[log]") {
  PipeReader reader;
  const auto queue = queue_to(reader);
  queue->add("bad\nall is well\x1b[2J" + std::string(10'000, 'x'));
  queue->add("bad\n" + std::string(10'000, 'y'), "tcp://1.2.3.4:5");
  queue->close();
  const std::vector<std::string> lines = reader.lines();
  REQUIRE(lines.size() == 2);
  CHECK(contains(lines[0], "bad\\x0aall is well\\x1b[2Jxxx"));
  CHECK(lines[0].size() < 4200);
  CHECK(contains(lines[1], "bad\\x0ayyy"));
  CHECK(lines[1].size() < 600);
}

TEST_CASE("a peer causes so many lines at once, and one a second", "[log]") {
  PipeReader reader;
  const auto clock = std::make_shared<VirtualClock>();
  const auto queue = queue_to(reader, {.clock = clock, .pool = std::make_shared<InlinePool>()});
  for (int i = 0; i < 30; ++i) queue->add("from one", "tcp://1.2.3.4:" + std::to_string(5000 + i));
  CHECK(reader.count("from one") == 20);
  CHECK(reader.count("left out") == 0);
  queue->add("from another", "tcp://1.2.3.5:5000");
  CHECK(reader.count("10 lines that others have caused were left out") == 1);
  CHECK(reader.count("from another") == 1);
  queue->add("of this task");
  CHECK(reader.count("of this task") == 1);
  clock->advance(1s);
  for (int i = 0; i < 5; ++i) queue->add("from one", "tcp://1.2.3.4:5000");
  CHECK(reader.count("from one") == 21);
  clock->advance(1h);
  for (int i = 0; i < 30; ++i) queue->add("from one", "tcp://1.2.3.4:5000");
  CHECK(reader.count("from one") == 41);
  CHECK(reader.count("4 lines that others have caused were left out") == 1);
  queue->close();
  CHECK(reader.lines().back() == "10 lines that others have caused were left out");
}

TEST_CASE("all peers together cause so many lines, however many they are", "[log]") {
  PipeReader reader;
  const auto clock = std::make_shared<VirtualClock>();
  const auto queue = queue_to(reader, {.clock = clock, .pool = std::make_shared<InlinePool>()});
  const auto attack = [&] {
    for (int i = 0; i < 2000; ++i) queue->add("a stranger", "tcp://[fe80::" + std::to_string(i) + "]:1");
    return reader.count("a stranger");
  };
  CHECK(attack() == 200);
  clock->advance(1s);
  CHECK(attack() == 210);
  clock->advance(1h);
  CHECK(attack() == 410);
}

TEST_CASE("standard error that nobody reads holds up no thread, and the end for a bounded time only", "[log]") {
  dflow::testing::StandardErrorPipe error;
  error.fill();
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.patience = 10ms});
  for (int i = 0; i < 5000; ++i) queue->add("a line that nobody reads");
  queue->flush();
  queue->close();
  queue->add("after the end");
  SUCCEED("it has come to its end");
}

TEST_CASE("the last lines come to standard error before the end, behind the task's name", "[log]") {
  dflow::testing::StandardErrorPipe error;
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.prefix = "task: ", .patience = 60s});
  for (int i = 0; i < 100; ++i) queue->add("line " + std::to_string(i));
  queue->close();
  CHECK(contains(error.read_until("task: line 99\n"), "task: line 0\ntask: line 1\n"));
}

TEST_CASE("standard error whose reader has gone raises no signal", "[log]") {
  const dflow::testing::BrokenPipeCount signals;
  dflow::testing::StandardErrorPipe error;
  error.take_reader_away();
  const bool by_own_thread = GENERATE(true, false);
  const auto pool = by_own_thread ? nullptr : std::make_shared<InlinePool>();
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.pool = pool, .patience = 60s});
  for (int i = 0; i < 10; ++i) queue->add("a line");
  queue->close();
  CHECK(signals.count() == 0);
  sigset_t pending;
  REQUIRE(::sigpending(&pending) == 0);
  CHECK(::sigismember(&pending, SIGPIPE) == 0);
  sigset_t blocked;
  REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
  CHECK(::sigismember(&blocked, SIGPIPE) == 0);
}

TEST_CASE("a log may log, and close what it is called by", "[log]") {
  const bool by_own_thread = GENERATE(true, false);
  const auto pool = by_own_thread ? nullptr : std::make_shared<InlinePool>();
  std::weak_ptr<LogQueue> itself;
  std::vector<std::string> lines;
  const auto write = [&](std::string_view line) {
    lines.emplace_back(line);
    const std::shared_ptr<LogQueue> queue = itself.lock();
    if (line == "first") queue->add("second");
    if (line == "second") queue->close();
  };
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.write = write, .pool = pool, .patience = 60s});
  itself = queue;
  queue->add("first");
  queue->flush();
  queue->close();
  queue->add("third");
  queue->flush();
  CHECK(lines == std::vector<std::string>{"first", "second"});
}

TEST_CASE("the end waits for a log that is being called, and calls it no more", "[log]") {
  PipeReader reader;
  reader.hold();
  const auto queue = queue_to(reader, {.patience = 1ms});
  queue->add("first");
  queue->add("second");
  reader.wait_until_begun();
  std::size_t lines_at_end = 0;
  std::thread ending([&] {
    queue->close();
    lines_at_end = reader.lines().size();
  });
  reader.release();
  ending.join();
  CHECK(lines_at_end >= 1);  // the second line too, if it was written in time
  CHECK(reader.lines().size() == lines_at_end);
}

TEST_CASE("a pool of the caller's writes the lines, or else the end does", "[log]") {
  PipeReader reader;
  const auto pool = std::make_shared<KeepingPool>();
  const auto queue = queue_to(reader, {.pool = pool});
  queue->add("first");
  queue->add("second");
  CHECK(reader.lines().empty());
  CHECK(pool->run_one());
  CHECK(reader.lines() == std::vector<std::string>{"first", "second"});
  CHECK_FALSE(pool->run_one());
  queue->add("third");
  queue->flush();
  CHECK(reader.count("third") == 0);
  queue->close();
  CHECK(reader.count("third") == 1);
  CHECK(pool->run_one());
  CHECK(reader.lines().size() == 3);
}

TEST_CASE("a log that throws loses its line alone", "[log]") {
  int calls = 0;
  const auto write = [&](std::string_view) {
    if (++calls == 1) throw std::runtime_error("no room");
  };
  const auto queue = std::make_shared<LogQueue>(LogQueueOptions{.write = write, .patience = 60s});
  queue->add("first");
  queue->add("second");
  queue->close();
  CHECK(calls == 2);
}
