#include <dflow/train/input/coordinator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/clock.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The behaviours come from TensorFlow 0.8, python/training/coordinator_test.py.

using namespace dflow;
using Catch::Matchers::Contains;
using dflow::train::Coordinator;
using namespace std::chrono_literals;

namespace {

/// Ends when the coordinator stops.
void wait_for_stop_of(Coordinator& coordinator) { coordinator.wait_for_stop(); }

/// Waits until somebody waits on the virtual clock, and moves it there.
void advance_when_waited_for(VirtualClock& clock) {
  while (!clock.advance_to_next()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("A coordinator stops when it is told to, and goes on when that is cleared") {
  Coordinator coordinator;
  CHECK_FALSE(coordinator.should_stop());
  CHECK_FALSE(coordinator.wait_for_stop(1ms));
  CHECK_FALSE(coordinator.wait_for_stop(-1ms));
  const std::stop_token token = coordinator.stop_token();
  CHECK_FALSE(token.stop_requested());
  coordinator.request_stop();
  CHECK(coordinator.should_stop());
  CHECK(token.stop_requested());
  coordinator.wait_for_stop();
  CHECK(coordinator.wait_for_stop(1h));
  coordinator.clear_stop();
  CHECK_FALSE(coordinator.should_stop());
  CHECK(token.stop_requested());
  CHECK_FALSE(coordinator.stop_token().stop_requested());
}

TEST_CASE("A coordinator is stopped from another thread") {
  Coordinator coordinator;
  std::promise<void> go;
  coordinator.start("stopper", [&] {
    go.get_future().wait();
    coordinator.request_stop();
  });
  CHECK_FALSE(coordinator.wait_for_stop(1ms));
  go.set_value();
  coordinator.wait_for_stop();
  coordinator.join();
}

TEST_CASE("Joining waits for all threads, stopped or not") {
  Coordinator coordinator;
  std::atomic<int> ended{0};
  for (int i = 0; i < 5; ++i) coordinator.start("counts", [&] { ++ended; });
  coordinator.join();
  CHECK(ended == 5);
  CHECK_FALSE(coordinator.should_stop());
  CHECK(coordinator.running_threads().empty());

  for (int i = 0; i < 3; ++i) {
    coordinator.start("waits", [&] {
      coordinator.wait_for_stop();
      ++ended;
    });
  }
  CHECK(coordinator.running_threads() == std::vector<std::string>{"waits", "waits", "waits"});
  coordinator.request_stop();
  coordinator.join();
  CHECK(ended == 8);
  coordinator.join();
}

TEST_CASE("Threads that were made elsewhere are joined too, and told to stop") {
  Coordinator coordinator;
  std::atomic<bool> was_told{false};
  coordinator.register_thread("mine", std::jthread([&](const std::stop_token& stop) {
                                while (!stop.stop_requested()) std::this_thread::yield();
                                was_told = true;
                              }));
  coordinator.register_thread("none", std::jthread());
  coordinator.request_stop();
  coordinator.join();
  CHECK(was_told);
}

TEST_CASE("Joining throws the first error, and again each time") {
  Coordinator coordinator;
  std::promise<void> first_is_in;
  coordinator.start("first", [&] {
    try {
      coordinator.request_stop(std::make_exception_ptr(std::runtime_error("first")));
    } catch (...) {
    }
    first_is_in.set_value();
  });
  coordinator.start("second", [&] {
    first_is_in.get_future().wait();
    throw std::runtime_error("second");
  });
  CHECK_THROWS_WITH(coordinator.join(), "first");
  CHECK_THROWS_WITH(coordinator.join(), "first");
}

TEST_CASE("An error that is thrown in a thread stops the others") {
  Coordinator coordinator;
  coordinator.start("waits", [&] { wait_for_stop_of(coordinator); });
  coordinator.start("fails", [] { throw_error(Status::data_loss("the record is torn")); });
  try {
    coordinator.join();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Code::data_loss);
    CHECK(error.status().message() == "the record is torn");
  }
  CHECK(coordinator.should_stop());
}

TEST_CASE("An error that comes after a stop is dropped") {
  Coordinator coordinator;
  coordinator.start("fails late", [&] {
    coordinator.wait_for_stop();
    throw std::runtime_error("too late");
  });
  coordinator.request_stop();
  coordinator.join();
}

TEST_CASE("OutOfRange is an ordinary end, and so are the codes that a coordinator is given") {
  Coordinator coordinator;
  coordinator.start("ends", [] { throw_error(Status::out_of_range("no more")); });
  coordinator.join();
  CHECK(coordinator.should_stop());

  Coordinator other({.clean_stop = {Code::cancelled, Code::aborted}});
  other.request_stop(Status::aborted("gone"));
  other.join();
  CHECK(other.should_stop());
  other.clear_stop();
  other.request_stop(Status::out_of_range("no more"));
  CHECK_THROWS_WITH(other.join(), Contains("no more"));
}

TEST_CASE("A status that is ok stops without an error, and so does no exception") {
  Coordinator coordinator;
  coordinator.request_stop(Status());
  CHECK(coordinator.should_stop());
  coordinator.join();
  coordinator.clear_stop();
  coordinator.request_stop(std::exception_ptr());
  CHECK(coordinator.should_stop());
  coordinator.join();
}

TEST_CASE("A body that throws stops the coordinator, and its caller goes on") {
  Coordinator coordinator;
  CHECK(coordinator.stop_on_exception([] {}));
  CHECK_FALSE(coordinator.should_stop());
  CHECK_FALSE(coordinator.stop_on_exception([] { throw std::runtime_error("first"); }));
  CHECK_FALSE(coordinator.stop_on_exception([] { throw std::runtime_error("second"); }));
  CHECK(coordinator.should_stop());
  CHECK_THROWS_WITH(coordinator.join(), "first");
}

TEST_CASE("Threads that run on after the grace period are named") {
  auto clock = std::make_shared<VirtualClock>();
  Coordinator coordinator({.clock = clock});
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  coordinator.start("slow", [gone] { gone.wait(); });
  coordinator.start("quick", [&] { wait_for_stop_of(coordinator); });
  coordinator.request_stop();
  while (coordinator.running_threads().size() > 1) std::this_thread::yield();
  const auto join = [&](const train::JoinOptions& options) {
    std::future<Status> joined = std::async(std::launch::async, [&coordinator, options] {
      try {
        coordinator.join(options);
        return Status();
      } catch (const Error& error) {
        return error.status();
      }
    });
    advance_when_waited_for(*clock);
    return joined.get();
  };
  const Status status = join({.grace = 5s});
  CHECK(status.code() == Code::deadline_exceeded);
  CHECK(status.message() == "threads still run although a stop was requested: slow");
  CHECK(join({.grace = 5s, .ignore_stragglers = true}).ok());
  CHECK(clock->now().time_since_epoch() == 10s);
  go.set_value();
  coordinator.join({.grace = Clock::duration::max()});
}

TEST_CASE("The error that stopped all is thrown although a thread runs on") {
  Coordinator coordinator;
  std::promise<void> go;
  coordinator.start("slow", [gone = go.get_future().share()] { gone.wait(); });
  coordinator.request_stop(Status::internal("broken"));
  CHECK_THROWS_WITH(coordinator.join({.grace = Clock::duration::zero()}), Contains("broken"));
  go.set_value();
}

TEST_CASE("Clearing a stop forgets the error") {
  Coordinator coordinator;
  coordinator.request_stop(Status::internal("before"));
  CHECK_THROWS_WITH(coordinator.join(), Contains("before"));
  coordinator.clear_stop();
  coordinator.join();
  coordinator.clear_stop();
  coordinator.start("fails", [] { throw std::runtime_error("after"); });
  CHECK_THROWS_WITH(coordinator.join(), "after");
}

TEST_CASE("An error that nobody will join for is thrown where it is reported") {
  Coordinator coordinator;
  coordinator.join();
  CHECK_THROWS_WITH(coordinator.request_stop(Status::internal("too late")), Contains("too late"));
  CHECK_THROWS_WITH(coordinator.stop_on_exception([] { throw std::runtime_error("too late"); }), "too late");
  coordinator.request_stop(Status::out_of_range("an ordinary end"));
  coordinator.clear_stop();
  coordinator.request_stop(Status::internal("in time"));
  CHECK_THROWS_WITH(coordinator.join(), Contains("in time"));
}

TEST_CASE("An error of a thread that was started after a join is kept for the next one") {
  Coordinator coordinator;
  coordinator.join();
  coordinator.start("fails", [] { throw std::runtime_error("kept"); });
  CHECK_THROWS_WITH(coordinator.join(), "kept");
}

TEST_CASE("An error of a thread that was taken over after a join is kept for the next one") {
  Coordinator coordinator;
  coordinator.join();
  std::promise<void> is_taken_over;
  coordinator.register_thread("fails", std::jthread([&, taken = is_taken_over.get_future()]() mutable {
                                taken.wait();
                                coordinator.stop_on_exception([] { throw std::runtime_error("kept"); });
                              }));
  is_taken_over.set_value();
  CHECK_THROWS_WITH(coordinator.join(), "kept");
}

TEST_CASE("An empty function is refused, and nothing runs") {
  Coordinator coordinator;
  const auto refused = [](const auto& f) { return code_of([&] { return f(), 0; }) == dflow::Code::invalid_argument; };
  CHECK(refused([&] { coordinator.start("none", {}); }));
  CHECK(refused([&] { coordinator.start_every("none", 1ms, {}); }));
  std::vector<std::pair<std::string, dflow::UniqueFunction<void()>>> two;
  two.emplace_back("one", [] {});
  two.emplace_back("none", nullptr);
  CHECK(refused([&] { coordinator.start_group("key", std::move(two)); }));
  CHECK(coordinator.running_threads().empty());
  coordinator.join();
}

TEST_CASE("A thread cannot wait for itself") {
  Coordinator coordinator;
  coordinator.start("joins", [&] { coordinator.join(); });
  CHECK_THROWS_WITH(coordinator.join(), Contains("cannot wait for itself"));
}

TEST_CASE("A thread that was taken over cannot wait for itself, and is forgotten when it has ended") {
  Coordinator coordinator;
  for (int i = 0; i < 3; ++i) {
    std::promise<void> is_taken_over;
    coordinator.register_thread("joins", std::jthread([&, taken = is_taken_over.get_future()]() mutable {
                                  taken.wait();
                                  coordinator.stop_on_exception([&] { coordinator.join(); });
                                }));
    is_taken_over.set_value();
    CHECK_THROWS_WITH(coordinator.join(), Contains("cannot wait for itself"));
    CHECK(coordinator.running_threads().empty());
    coordinator.clear_stop();
  }
  std::jthread([&] { CHECK_NOTHROW(coordinator.join()); }).join();  // it may have the number of an ended thread
}

TEST_CASE("A coordinator that goes stops its threads and waits for them") {
  std::atomic<int> ended{0};
  {
    Coordinator coordinator;
    for (int i = 0; i < 3; ++i) {
      coordinator.start("waits", [&coordinator, &ended] {
        coordinator.wait_for_stop();
        ++ended;
      });
    }
  }
  CHECK(ended == 3);
}

TEST_CASE("Something is done at intervals until the stop") {
  auto clock = std::make_shared<VirtualClock>();
  Coordinator coordinator({.clock = clock});
  std::atomic<int> runs{0};
  coordinator.start_every("every minute", 1min, [&] {
    if (++runs == 4) coordinator.request_stop();
  });
  while (!coordinator.should_stop()) {
    clock->advance_to_next();
    std::this_thread::yield();
  }
  coordinator.join();
  CHECK(runs == 4);
  CHECK(clock->now().time_since_epoch() == 3min);

  coordinator.clear_stop();
  coordinator.start_every("always", Clock::duration::zero(), [&] {
    if (++runs == 1000) throw std::runtime_error("enough");
  });
  CHECK_THROWS_WITH(coordinator.join(), "enough");
  CHECK(runs == 1000);
}

TEST_CASE("A group of threads is started once, until all of them have ended") {
  Coordinator coordinator;
  std::atomic<int> runs{0};
  const auto group = [&] {
    std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies;
    for (int i = 0; i < 2; ++i) {
      bodies.emplace_back("waits", [&] {
        ++runs;
        coordinator.wait_for_stop();
      });
    }
    return bodies;
  };
  CHECK(coordinator.start_group("a", group()));
  CHECK_FALSE(coordinator.start_group("a", group()));
  CHECK(coordinator.start_group("b", group()));
  coordinator.request_stop();
  coordinator.join();
  coordinator.clear_stop();
  CHECK(coordinator.start_group("a", group()));
  coordinator.request_stop();
  coordinator.join();
  CHECK(runs == 6);
}

TEST_CASE("Many threads report, stop and wait at once") {
  for (int round = 0; round < 20; ++round) {
    Coordinator coordinator;
    std::atomic<int> ended{0};
    for (int i = 0; i < 8; ++i) {
      coordinator.start("worker", [&coordinator, &ended, i] {
        if (i % 2 == 0) coordinator.wait_for_stop();
        if (i == 3) coordinator.start("grandchild", [&ended] { ++ended; });
        ++ended;
        if (i % 2 == 1) throw std::runtime_error("one of them");
      });
    }
    CHECK_THROWS_WITH(coordinator.join(), "one of them");
    CHECK(ended == 9);
  }
}
