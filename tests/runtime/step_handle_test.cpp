#include <dflow/runtime/step_handle.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// A part that the test ends.
class FakePart final : public StepPart {
 public:
  explicit FakePart(bool may_stay_silent = false, bool ends_when_cancelled = false)
      : may_stay_silent_(may_stay_silent), ends_when_cancelled_(ends_when_cancelled) {}

  void start(StepHandle&, Done done) override {
    done_ = std::move(done);
    has_started = true;
  }
  void cancel(const Status& status) override {
    ++times_cancelled;
    why = status;
    if (ends_when_cancelled_ && done_) end(status);
  }
  bool may_stay_silent() const noexcept override { return may_stay_silent_; }
  void end(const Status& status = {}) {
    if (Done done = std::exchange(done_, nullptr)) done(status);
  }

  bool has_started = false;
  int times_cancelled = 0;
  Status why;

 private:
  const bool may_stay_silent_;
  const bool ends_when_cancelled_;
  Done done_;
};

/// A part at a place, which a deadline's message names.
class PlacedPart final : public StepPart {
 public:
  explicit PlacedPart(std::string place) : place_(std::move(place)) {}

  void start(StepHandle&, Done done) override { done_ = std::move(done); }
  void cancel(const Status& status) override { end(status); }
  std::string_view place() const noexcept override { return place_; }
  void end(const Status& status = {}) {
    if (Done done = std::exchange(done_, nullptr)) done(status);
  }

 private:
  const std::string place_;
  Done done_;
};

struct FakeStep {
  explicit FakeStep(StepHandle::Options options = {}) : handle(std::make_shared<StepHandle>(std::move(options))) {}

  std::shared_ptr<FakePart> add(bool may_stay_silent = false, bool ends_when_cancelled = false) {
    auto part = std::make_shared<FakePart>(may_stay_silent, ends_when_cancelled);
    handle->add_part(part);
    return part;
  }
  void start() {
    handle->start([ended = ended](const Status& status) { ended->push_back(status); });
  }

  std::shared_ptr<StepHandle> handle;
  std::shared_ptr<std::vector<Status>> ended = std::make_shared<std::vector<Status>>();
};

const RendezvousKey key("/cpu:0", 1, "/client", "x");

}  // namespace

TEST_CASE("a step ends once, when all its parts have", "[runtime][step_handle]") {
  FakeStep step;
  const auto a = step.add(), b = step.add();
  step.start();
  CHECK(a->has_started);
  CHECK(b->has_started);
  a->end();
  CHECK(step.ended->empty());
  b->end();
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().ok());
  step.handle->cancel(Status::internal("too late"));
  CHECK(step.ended->size() == 1);
  CHECK(a->times_cancelled == 0);
}

TEST_CASE("a step without parts ends at once", "[runtime][step_handle]") {
  FakeStep step;
  step.start();
  CHECK(step.ended->size() == 1);
}

TEST_CASE("the first error of all parts is reported and cancels the others", "[runtime][step_handle]") {
  FakeStep step;
  const auto a = step.add(), b = step.add(), c = step.add();
  step.start();
  b->end(Status::data_loss("first"));
  CHECK(a->times_cancelled == 1);
  CHECK(a->why.code() == Code::data_loss);
  CHECK(step.handle->cancellation().is_cancelled());
  CHECK(step.handle->cancellation().status().code() == Code::data_loss);
  c->end(Status::internal("second"));
  step.handle->cancel(Status::unavailable("third"));
  CHECK(a->times_cancelled == 1);
  CHECK(step.ended->empty());
  a->end();
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().code() == Code::data_loss);
}

TEST_CASE("a part that may stay silent is not waited for after a cancel, and may end later", "[runtime][step_handle]") {
  FakeStep step;
  const auto silent = step.add(true), other = step.add();
  step.start();
  step.handle->cancel(Status());
  CHECK(step.ended->empty());
  other->end();
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().code() == Code::cancelled);
  silent->end();
  CHECK(step.ended->size() == 1);
}

TEST_CASE("parts that end inside of cancel end the step there", "[runtime][step_handle]") {
  FakeStep step;
  step.add(false, true);
  step.add(false, true);
  step.start();
  step.handle->cancel(Status::unavailable("now"));
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().code() == Code::unavailable);
}

TEST_CASE("a deadline ends a step with DeadlineExceeded and its timer goes with it", "[runtime][step_handle]") {
  const auto clock = std::make_shared<VirtualClock>();
  const auto options = [&] {
    StepHandle::Options with;
    with.clock = clock;
    with.deadline = clock->after(std::chrono::seconds(2));
    return with;
  };
  FakeStep late(options());
  late.add(false, true);
  late.start();
  clock->advance(std::chrono::seconds(1));
  CHECK(late.ended->empty());
  clock->advance(std::chrono::seconds(1));
  REQUIRE(late.ended->size() == 1);
  CHECK(late.ended->front().code() == Code::deadline_exceeded);

  FakeStep quick(options());
  const auto part = quick.add();
  quick.start();
  CHECK(clock->next_deadline() != Clock::never);
  part->end();
  CHECK(clock->next_deadline() == Clock::never);
  REQUIRE(quick.ended->size() == 1);
  CHECK(quick.ended->front().ok());
}

TEST_CASE("the message of a deadline names four parts that have not ended, and counts the others",
          "[runtime][step_handle]") {
  for (const int count : {1, 4, 5, 7}) {
    const auto clock = std::make_shared<VirtualClock>();
    StepHandle::Options options;
    options.clock = clock;
    options.deadline = clock->after(std::chrono::seconds(2));
    FakeStep step(options);
    std::vector<std::shared_ptr<PlacedPart>> parts;
    for (int i = 0; i <= count; ++i) {
      parts.push_back(std::make_shared<PlacedPart>(str_cat("/cpu:", i)));
      step.handle->add_part(parts.back());
    }
    step.start();
    parts.front()->end();
    clock->advance(std::chrono::seconds(2));
    REQUIRE(step.ended->size() == 1);
    const std::string text = step.ended->front().to_string();
    CHECK(
        contains(text, count == 1 ? "not all is done on /cpu:1" : "not all is done on /cpu:1, /cpu:2, /cpu:3, /cpu:4"));
    CHECK_FALSE(contains(text, "/cpu:0"));
    CHECK_FALSE(contains(text, "/cpu:5"));
    CHECK(contains(text, " others") == (count > 4));
    if (count > 4) CHECK(contains(text, str_cat("/cpu:4 and ", count - 4, " others")));
  }
}

TEST_CASE("a stop token ends a step, also one that was stopped before", "[runtime][step_handle]") {
  for (const bool before : {true, false}) {
    std::stop_source source;
    StepHandle::Options options;
    options.stop = source.get_token();
    FakeStep step(std::move(options));
    const auto part = step.add(false, true);
    if (before) source.request_stop();
    step.start();
    if (before) part->end();
    source.request_stop();
    REQUIRE(step.ended->size() == 1);
    CHECK(step.ended->front().code() == Code::cancelled);
  }
}

TEST_CASE("a step under way keeps itself alive, and one that has ended does not", "[runtime][step_handle]") {
  const auto part = std::make_shared<FakePart>();
  std::weak_ptr<StepHandle> weak;
  int ended = 0;
  {
    const auto handle = std::make_shared<StepHandle>(StepHandle::Options{});
    weak = handle;
    handle->add_part(part);
    handle->start([&](const Status&) { ++ended; });
  }
  CHECK(!weak.expired());
  part->end();
  CHECK(ended == 1);
  CHECK(weak.expired());
}

TEST_CASE("a step does not end while it is held, and cannot be held when it has ended", "[runtime][step_handle]") {
  FakeStep step;
  const auto part = step.add();
  step.start();
  {
    const StepHandle::Hold hold(*step.handle);
    CHECK(static_cast<bool>(hold));
    part->end();
    CHECK(step.ended->empty());
  }
  CHECK(step.ended->size() == 1);
  const StepHandle::Hold late(*step.handle);
  CHECK(!late);
}

TEST_CASE("the client's feeds are sent and its fetches received before the step ends", "[runtime][step_handle]") {
  FakeStep step;
  const auto part = step.add();
  const RendezvousKey feed("/client", 1, "/cpu:0", "feed");
  step.handle->send_from_client({0, feed}, Tensor<float>(2.0f));
  AnyTensor fetched;
  step.handle->receive_at_client({0, key}, [&](AnyTensor tensor) { fetched = std::move(tensor); });
  step.start();
  AnyTensor fed;
  step.handle->rendezvous().recv_async(feed, [&](Status, AnyTensor tensor, bool) { fed = std::move(tensor); });
  CHECK(fed.span<float>()[0] == 2);
  part->end();
  CHECK(step.ended->empty());  // the fetch has not come
  CHECK(step.handle->rendezvous().send(key, Tensor<float>(3.0f), false).ok());
  CHECK(fetched.span<float>()[0] == 3);
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().ok());
}

TEST_CASE("a fetch that never comes ends with the error, a dead one with InvalidArgument", "[runtime][step_handle]") {
  for (const bool dead : {false, true}) {
    FakeStep step;
    const auto part = step.add();
    int received = 0;
    step.handle->receive_at_client({0, key}, [&](AnyTensor) { ++received; });
    step.start();
    if (dead) {
      CHECK(step.handle->rendezvous().send(key, AnyTensor(), true).ok());
      part->end();
    } else {
      part->end(Status::data_loss("lost"));
    }
    REQUIRE(step.ended->size() == 1);
    CHECK(step.ended->front().code() == (dead ? Code::invalid_argument : Code::data_loss));
    CHECK(received == 0);
  }
}

TEST_CASE("run ends for a part that others end and for a cancel from another thread", "[runtime][step_handle]") {
  WorkStealingPool pool(2);
  const auto queue = std::make_shared<UnitQueue>(pool);
  for (const bool cancels : {false, true}) {
    for (int i = 0; i < 200; ++i) {
      FakeStep step;
      const auto part = step.add(cancels);
      std::atomic<bool> begins{false};
      std::thread other([&] {
        while (!begins) std::this_thread::yield();
        cancels ? step.handle->cancel(Status::unavailable("other thread")) : part->end();
      });
      struct Begin final : StepPart {
        std::atomic<bool>* begins;
        explicit Begin(std::atomic<bool>& flag) : begins(&flag) {}
        void start(StepHandle&, Done done) override {
          *begins = true;
          done(Status());
        }
        void cancel(const Status&) override {}
      };
      step.handle->add_part(std::make_shared<Begin>(begins));
      const Status status = step.handle->run(*queue);
      CHECK(status.code() == (cancels ? Code::unavailable : Code::ok));
      other.join();
    }
  }
}

TEST_CASE("parts, deadline, stop and cancel race, and the step ends once", "[runtime][step_handle]") {
  for (int round = 0; round < 300; ++round) {
    const auto clock = std::make_shared<VirtualClock>();
    std::stop_source source;
    StepHandle::Options options;
    options.clock = clock;
    options.deadline = clock->after(std::chrono::seconds(1));
    options.stop = source.get_token();
    auto handle = std::make_shared<StepHandle>(std::move(options));
    const auto silent = std::make_shared<FakePart>(true), part = std::make_shared<FakePart>();
    handle->add_part(silent);
    handle->add_part(part);
    std::atomic<int> ended{0};
    handle->start([&](const Status&) { ++ended; });
    std::thread a([&] { clock->advance(std::chrono::seconds(2)); });
    std::thread b([&] { source.request_stop(); });
    std::thread c([&, held = std::move(handle)] { held->cancel(Status::internal("third")); });
    std::thread d([&] { part->end(); });
    a.join();
    b.join();
    c.join();
    d.join();
    CHECK(ended == 1);
  }
}

TEST_CASE("client edges may be added while a step runs", "[runtime][step_handle]") {
  FakeStep step;
  const auto part = step.add();
  step.start();
  const RendezvousKey feed("/client", 1, "/cpu:0", "feed");
  step.handle->send_from_client({0, feed}, Tensor<float>(2.0f));
  AnyTensor fed, fetched;
  step.handle->rendezvous().recv_async(feed, [&](Status, AnyTensor tensor, bool) { fed = std::move(tensor); });
  CHECK(fed.span<float>()[0] == 2);
  step.handle->receive_at_client({0, key, DType::float32}, [&](AnyTensor tensor) { fetched = std::move(tensor); });
  part->end();
  CHECK(step.ended->empty());
  CHECK(step.handle->rendezvous().send(key, Tensor<float>(3.0f), false).ok());
  CHECK(fetched.span<float>()[0] == 3);
  REQUIRE(step.ended->size() == 1);
  CHECK(step.ended->front().ok());
  // It has ended: nothing is taken any more, and nothing is kept.
  step.handle->send_from_client({0, feed}, Tensor<float>(2.0f));
  int received = 0;
  step.handle->receive_at_client({0, key}, [&](AnyTensor) { ++received; });
  CHECK(received == 0);
  CHECK(step.ended->size() == 1);
}

TEST_CASE("client edges come from several threads while a step runs, and it ends when all have",
          "[runtime][step_handle]") {
  for (int round = 0; round < 20; ++round) {
    FakeStep step;
    const auto part = step.add();
    step.start();
    constexpr int per_thread = 50;
    std::atomic<int> received{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < per_thread; ++i) {
          const RendezvousKey edge("/client", 1, "/client", str_cat(t, ":", i));
          step.handle->receive_at_client({0, edge}, [&](AnyTensor) { ++received; });
          step.handle->send_from_client({0, edge}, Tensor<float>(1.0f));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(step.ended->empty());
    part->end();
    REQUIRE(step.ended->size() == 1);
    CHECK(step.ended->front().ok());
    CHECK(received == 3 * per_thread);
  }
}

TEST_CASE("a feed that is sent twice and a fetch of another type end the step", "[runtime][step_handle]") {
  for (const bool twice : {true, false}) {
    FakeStep step;
    const auto part = step.add(false, true);
    step.start();
    if (twice) {
      for (int i = 0; i < 2; ++i) step.handle->send_from_client({0, key}, Tensor<float>(2.0f));
    } else {
      int received = 0;
      step.handle->receive_at_client({0, key, DType::int32}, [&](AnyTensor) { ++received; });
      CHECK(step.handle->rendezvous().send(key, Tensor<float>(3.0f), false).ok());
      CHECK(received == 0);
    }
    REQUIRE(step.ended->size() == 1);
    CHECK(step.ended->front().code() == (twice ? Code::aborted : Code::internal));
  }
}

TEST_CASE("a step within a step ends with it, and alone without harm to it", "[runtime][step_handle]") {
  for (const bool outer_ends : {true, false}) {
    FakeStep outer(StepHandle::Options{.id = 7});
    const auto outer_part = outer.add(false, true);
    outer.start();
    FakeStep first(StepHandle::Options{.outer = outer.handle}), second(StepHandle::Options{.outer = outer.handle});
    const auto first_part = first.add(false, true), second_part = second.add(false, true);
    CHECK(first.handle->id() == 7);
    CHECK(&first.handle->rendezvous() == &outer.handle->rendezvous());
    int received = 0;
    first.handle->receive_at_client({0, key}, [&](AnyTensor) { ++received; });
    first.start();
    second.start();
    if (outer_ends) {
      outer.handle->cancel(Status::data_loss("lost"));
      REQUIRE(second.ended->size() == 1);
      CHECK(second.ended->front().code() == Code::data_loss);
    } else {
      first.handle->cancel(Status::cancelled("the condition is false"));
      CHECK(second.ended->empty());
      CHECK(outer.ended->empty());
      CHECK(!outer.handle->cancellation().is_cancelled());
      CHECK(outer.handle->rendezvous().send(key, Tensor<float>(1.0f), false).ok());
      second_part->end();
      outer_part->end();
      CHECK(outer.ended->front().ok());
      CHECK(second.ended->front().ok());
    }
    REQUIRE(first.ended->size() == 1);
    CHECK(!first.ended->front().ok());
    CHECK(received == 0);
  }
}

TEST_CASE("a step within one that was cancelled before ends as soon as it begins", "[runtime][step_handle]") {
  FakeStep outer;
  const auto outer_part = outer.add(false, true);
  outer.start();
  outer.handle->cancel(Status::data_loss("lost"));
  FakeStep inner(StepHandle::Options{.outer = outer.handle});
  const auto part = inner.add(false, false);
  inner.start();
  part->end();
  REQUIRE(inner.ended->size() == 1);
  CHECK(inner.ended->front().code() == Code::data_loss);
}
