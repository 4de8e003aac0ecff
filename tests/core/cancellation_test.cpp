#include <dflow/core/cancellation.hpp>

#include "catch.hpp"

#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("the default token is never cancelled", "[cancellation]") {
  const CancellationToken token;
  CHECK_FALSE(token.can_be_cancelled());
  CHECK_FALSE(token.is_cancelled());
  CHECK(token.status().ok());
  CancellationRegistration registration = token.on_cancel([](const Status&) { FAIL("called"); });
  CHECK_FALSE(registration.try_deregister());
}

TEST_CASE("callbacks get the first status, once, in the order of registration", "[cancellation]") {
  CancellationSource source;
  const CancellationToken token = source.token();
  std::vector<int> order;
  const auto first = token.on_cancel([&](const Status& status) {
    CHECK(status.code() == Code::deadline_exceeded);
    CHECK(token.is_cancelled());
    order.push_back(1);
  });
  const auto second = token.on_cancel([&](const Status&) { order.push_back(2); });
  CHECK(source.cancel(Status::deadline_exceeded("late")));
  CHECK_FALSE(source.cancel(Status::internal("later still")));
  CHECK(order == std::vector{1, 2});
  CHECK(token.status() == Status::deadline_exceeded("late"));
}

TEST_CASE("an ok status counts as cancelled", "[cancellation]") {
  CancellationSource source;
  source.cancel();
  CHECK(source.is_cancelled());
  CHECK(source.token().status().code() == Code::cancelled);
}

TEST_CASE("registering with a cancelled token calls at once", "[cancellation]") {
  CancellationSource source;
  source.cancel(Status::aborted("gone"));
  bool is_called = false;
  CancellationRegistration registration = source.token().on_cancel([&](const Status& status) {
    is_called = true;
    CHECK(status.code() == Code::aborted);
  });
  CHECK(is_called);
  CHECK_FALSE(registration.try_deregister());
}

TEST_CASE("a deregistered callback is not called and its captures are gone", "[cancellation]") {
  CancellationSource source;
  auto held = std::make_shared<int>(1);
  int calls = 0;
  {
    const auto scoped = source.token().on_cancel([&, held](const Status&) { ++calls; });
    CHECK(held.use_count() == 2);
  }
  CHECK(held.use_count() == 1);
  CancellationRegistration registration = source.token().on_cancel([&](const Status&) { ++calls; });
  CHECK(registration.try_deregister());
  CHECK_FALSE(registration.try_deregister());
  auto replaced = source.token().on_cancel([&](const Status&) { ++calls; });
  replaced = CancellationRegistration();
  source.cancel();
  CHECK(calls == 0);
}

TEST_CASE("a callback may deregister itself and others, and register more", "[cancellation]") {
  CancellationSource source;
  const CancellationToken token = source.token();
  int calls = 0;
  CancellationRegistration self;
  CancellationRegistration other;
  CancellationRegistration late;
  self = token.on_cancel([&](const Status&) {
    ++calls;
    self.deregister();
    CHECK(other.try_deregister());
    late = token.on_cancel([&](const Status&) { calls += 10; });
  });
  other = token.on_cancel([&](const Status&) { calls += 100; });
  source.cancel();
  CHECK(calls == 11);
}

TEST_CASE("a linked source follows its parent, not the other way round", "[cancellation]") {
  CancellationSource parent;
  CancellationSource child(parent.token());
  CancellationSource other(parent.token());
  other.cancel(Status::internal("own fault"));
  CHECK_FALSE(parent.is_cancelled());
  parent.cancel(Status::deadline_exceeded("late"));
  CHECK(child.token().status().code() == Code::deadline_exceeded);
  CHECK(other.token().status().code() == Code::internal);
  CancellationSource born_cancelled(parent.token());
  CHECK(born_cancelled.is_cancelled());
  CancellationSource unlinked{CancellationToken()};
  CHECK_FALSE(unlinked.is_cancelled());
  { const CancellationSource short_lived(parent.token()); }
}

TEST_CASE("a callback may destroy the source, the token and the last registration", "[cancellation]") {
  auto source = std::make_unique<CancellationSource>();
  auto token = std::make_unique<CancellationToken>(source->token());
  CancellationRegistration registration;
  std::string message;
  registration = token->on_cancel([&](const Status& status) {
    registration = CancellationRegistration();
    token.reset();
    source.reset();
    message = status.message();
  });
  CHECK(source->cancel(Status::aborted("all of it")));
  CHECK(message == "all of it");
}

TEST_CASE("callbacks after one that destroyed the source are called", "[cancellation]") {
  auto source = std::make_unique<CancellationSource>();
  const auto first = source->token().on_cancel([&](const Status&) { source.reset(); });
  Code code = Code::ok;
  const auto second = source->token().on_cancel([&](const Status& status) { code = status.code(); });
  source->cancel(Status::aborted("all of it"));
  CHECK(code == Code::aborted);
}

TEST_CASE("a callback that is called at once may destroy its token", "[cancellation]") {
  auto source = std::make_unique<CancellationSource>();
  source->cancel(Status::aborted("early"));
  auto token = std::make_unique<CancellationToken>(source->token());
  source.reset();
  std::string message;
  const auto registration = token->on_cancel([&](const Status& status) {
    token.reset();
    message = status.message();
  });
  CHECK(message == "early");
}

TEST_CASE("the last holder of a linked source may go in its callback", "[cancellation]") {
  CancellationSource parent;
  auto child = std::make_unique<CancellationSource>(parent.token());
  bool is_called = false;
  CancellationRegistration registration;
  registration = child->token().on_cancel([&](const Status&) {
    registration = CancellationRegistration();
    child.reset();
    is_called = true;
  });
  parent.cancel();
  CHECK(is_called);
  CHECK(child == nullptr);
}

TEST_CASE("a hundred thousand callbacks are called in order, but those taken out", "[cancellation]") {
  constexpr int count = 100'000;
  CancellationSource source;
  const CancellationToken token = source.token();
  std::vector<CancellationRegistration> registrations;
  int next = 0;
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    registrations.push_back(token.on_cancel([&, i](const Status&) {
      while (next % 3 == 1) ++next;
      wrong += i != next++;
    }));
  }
  for (int i = 1; i < count; i += 3) wrong += !registrations[static_cast<std::size_t>(i)].try_deregister();
  source.cancel();
  CHECK(wrong == 0);
  CHECK(next >= count - 1);
  for (CancellationRegistration& registration : registrations) wrong += registration.try_deregister();
  CHECK(wrong == 0);
}

TEST_CASE("callbacks come and go behind one that stays", "[cancellation]") {
  CancellationSource source;
  const CancellationToken token = source.token();
  std::vector<int> called;
  const auto first = token.on_cancel([&](const Status&) { called.push_back(1); });
  std::deque<CancellationRegistration> window;
  for (int i = 0; i < 100'000; ++i) {
    window.push_back(token.on_cancel([&](const Status&) { called.push_back(2); }));
    if (window.size() > 8) window.pop_front();
  }
  const auto last = token.on_cancel([&](const Status&) { called.push_back(3); });
  source.cancel();
  CHECK(called == std::vector{1, 2, 2, 2, 2, 2, 2, 2, 2, 3});
}

TEST_CASE("deregister waits for a callback that is running", "[cancellation][stress]") {
  CancellationSource source;
  std::promise<void> started;
  std::promise<void> may_finish;
  std::atomic<bool> is_finished{false};
  CancellationRegistration registration = source.token().on_cancel([&](const Status&) {
    started.set_value();
    may_finish.get_future().wait();
    is_finished = true;
  });
  std::thread canceller([&] { source.cancel(); });
  started.get_future().wait();
  CancellationRegistration copy = source.token().on_cancel([](const Status&) {});
  std::thread finisher([&] { may_finish.set_value(); });
  registration.deregister();
  CHECK(is_finished);
  canceller.join();
  finisher.join();
}

TEST_CASE("threads register, deregister and cancel at once", "[cancellation][stress]") {
  for (int round = 0; round < 100; ++round) {
    CancellationSource source;
    std::atomic<int> called{0};
    std::atomic<int> removed{0};
    std::vector<std::vector<std::unique_ptr<int>>> kept(3);
    std::vector<std::thread> threads;
    for (auto& mine : kept) {
      threads.emplace_back([&, token = source.token()] {
        for (int i = 0; i < 50; ++i) {
          auto owned = std::make_unique<int>(0);
          CancellationRegistration registration = token.on_cancel([&called, p = owned.get()](const Status&) {
            ++*p;
            ++called;
          });
          if (i % 2 == 0) {
            registration.deregister();
          } else if (registration.try_deregister()) {
            ++removed;
          } else {
            mine.push_back(std::move(owned));  // the callback may be running: what it uses must stay
          }
        }
      });
    }
    source.cancel();
    for (std::thread& thread : threads) thread.join();
    CHECK(called + removed <= 150);
  }
}
