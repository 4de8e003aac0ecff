#include <dflow/net/tasks/reset_devices.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/runtime/default_devices.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/state/accumulator_state.hpp>
#include <dflow/state/queue_state.hpp>
#include <dflow/state/staleness_clock_state.hpp>
#include <dflow/state/token_barrier_state.hpp>
#include <dflow/state/variable_state.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/errors.hpp"

using namespace dflow;

namespace {

std::vector<std::shared_ptr<Device>> two_empty_devices() {
  return make_default_devices({.count = 2, .pool = std::make_shared<WorkStealingPool>(1)});
}

/// Keeps one variable in each of the containers.
void keep_variables(const Device& device, const std::vector<std::string>& containers) {
  for (const std::string& name : containers) {
    device.context().resources->container(name)->insert(
        "v", std::make_shared<VariableState>("v", DType::float32, PartialShape{}));
  }
}

std::shared_ptr<QueueState> queue_in(ResourceContainer& container, const std::string& name) {
  return container.lookup_or_create<QueueState>(name, [&] {
    return std::make_shared<QueueState>(name, QueueState::Kind{.dtypes = {DType::int32}, .shapes = {}, .capacity = 1});
  });
}

/// The containers that have something in them.
std::vector<std::string> filled(const Device& device) {
  std::vector<std::string> names;
  for (const std::string& name : device.context().resources->names()) {
    if (device.context().resources->container(name)->size() != 0) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("containers of devices are reset by name, or all of them but the library's own") {
  const auto devices = two_empty_devices();
  using Names = std::vector<std::string>;
  for (const auto& device : devices) keep_variables(*device, {"", "a", "b", "_own"});
  net::reset_devices(devices, Names{"a", "nobody has asked for it"});
  for (const auto& device : devices) CHECK(filled(*device) == Names{"", "_own", "b"});
  net::reset_devices(std::span(devices).first(1), Names{""});
  CHECK(filled(*devices[0]) == Names{"_own", "b"});
  CHECK(filled(*devices[1]) == Names{"", "_own", "b"});
  CHECK(code_of([&] { net::reset_devices(devices, Names{"b", "_own"}); }) == Code::invalid_argument);
  CHECK(filled(*devices[0]) == Names{"_own", "b"});
  net::reset_devices(devices, {});
  for (const auto& device : devices) CHECK(filled(*device) == Names{"_own"});
}

TEST_CASE("who waits for what others do with a resource that is reset is told, and so is who comes later") {
  const auto devices = two_empty_devices();
  const auto container = devices[0]->context().resources->container("training");
  const auto queue = queue_in(*container, "q");
  const auto accumulator =
      std::make_shared<AccumulatorState>("a", DType::float32, PartialShape{}, AccumulatorState::Kind{});
  const auto barrier = std::make_shared<TokenBarrierState>("b", 2, 2);
  container->insert("a", accumulator);
  const auto clock = std::make_shared<StalenessClockState>("c", 2, 0);
  container->insert("b", barrier);
  container->insert("c", clock);
  barrier->open(3);
  barrier->arrive(0, 3);
  const std::int64_t fast = clock->join(0);
  clock->join(1);
  clock->tick(fast);
  const auto one = [] { return QueuedElements{.components = {Tensor<int>(1)}, .is_single = true}; };
  std::vector<Status> told;
  const auto note = [&](Status status) { told.push_back(std::move(status)); };
  const CancellationSource never;
  const auto wait = [&](const CancellationToken& token) {
    queue->dequeue_async(2, false, token, [&](Status status, std::vector<QueuedElements>) { note(std::move(status)); });
    accumulator->take_async(1, token, [&](Status status, TakenGradients) { note(std::move(status)); });
    barrier->wait_async(0, 3, token, [&](Status status, std::int64_t) { note(std::move(status)); });
    barrier->collect_async(0, token, [&](Status status, TokenBarrierState::Collected) { note(std::move(status)); });
    clock->wait_async(fast, token, [&](Status status, std::int64_t) { note(std::move(status)); });
    clock->watch_async({}, token, [&](Status status, std::vector<std::int32_t>) { note(std::move(status)); });
  };
  wait(never.token());
  CHECK(told.empty());
  net::reset_devices(devices, {});
  REQUIRE(told.size() == 6);
  wait({});
  REQUIRE(told.size() == 12);
  for (const Status& status : told) {
    CHECK(status.code() == Code::aborted);
    CHECK(mentions(status, "container 'training' was reset"));
  }
  // A call that does not wait goes on: there is room for one.
  queue->enqueue_async(one(), {}, note);
  queue->enqueue_async(one(), {}, note);
  REQUIRE(told.size() == 14);
  CHECK(told[12].ok());
  CHECK(told[13].code() == Code::aborted);
  CHECK(container->size() == 0);
}

TEST_CASE("what somebody who is told of a reset makes anew stays, and is not told of it") {
  const auto devices = two_empty_devices();
  const auto container = devices[0]->context().resources->container("training");
  std::vector<Code> told;
  const auto wait_in = [&](const std::string& name, const auto& then) {
    queue_in(*container, name)->dequeue_async(1, false, {}, [&told, then](const Status& status, const auto&) {
      told.push_back(status.code());
      then();
    });
  };
  wait_in("b", [] {});
  wait_in("a", [&] {
    wait_in("a", [] {});
    wait_in("b", [] {});
  });
  net::reset_devices(devices, {});
  CHECK(told == std::vector{Code::aborted, Code::aborted});
  CHECK(container->names() == std::vector<std::string>{"a", "b"});
  net::reset_devices(devices, {});
  CHECK(told.size() == 4);
}

TEST_CASE("nobody waits in a resource that was made between two resets for more than the next", "[stress]") {
  const auto devices = two_empty_devices();
  const auto container = devices[0]->context().resources->container("training");
  std::atomic<int> num_waited{0}, num_told{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        ++num_waited;
        queue_in(*container, std::to_string(i % 3))
            ->dequeue_async(1, false, {}, [&](const Status& status, const auto&) {
              if (status.code() == Code::aborted) ++num_told;
            });
        if (i % 2 == 0) net::reset_devices(devices, {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  net::reset_devices(devices, {});
  CHECK(num_told == num_waited);
}
