#include <dflow/net/master/reset.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/state/accumulator_state.hpp>
#include <dflow/kernels/state/queue_state.hpp>
#include <dflow/kernels/state/staleness_clock_state.hpp>
#include <dflow/kernels/state/token_barrier_state.hpp>
#include <dflow/kernels/state/variable_state.hpp>
#include <dflow/runtime/default_devices.hpp>
#include <dflow/runtime/device.hpp>

#include <memory>
#include <string>
#include <vector>

#include "../../errors.hpp"

using namespace dflow;

namespace {

std::vector<std::shared_ptr<Device>> two_empty_devices() {
  return make_default_devices({.count = 2, .pool = std::make_shared<WorkStealingPool>(1)});
}

/// One in each of the containers.
void keep_variables(const Device& device, const std::vector<std::string>& containers) {
  for (const std::string& name : containers) {
    device.context().resources->container(name)->insert(
        "v", std::make_shared<VariableState>("v", DType::float32, PartialShape{}));
  }
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
  const auto queue =
      std::make_shared<QueueState>("q", QueueState::Kind{.dtypes = {DType::int32}, .shapes = {}, .capacity = 1});
  const auto accumulator =
      std::make_shared<AccumulatorState>("a", DType::float32, PartialShape{}, AccumulatorState::Kind{});
  const auto barrier = std::make_shared<TokenBarrierState>("b", 2, 2);
  container->insert("q", queue);
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
  // What does not wait goes on: there is room for one.
  queue->enqueue_async(one(), {}, note);
  queue->enqueue_async(one(), {}, note);
  REQUIRE(told.size() == 14);
  CHECK(told[12].ok());
  CHECK(told[13].code() == Code::aborted);
  CHECK(container->size() == 0);
}
