#include <dflow/passes/compile_step.hpp>

#include <dflow/dflow.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// Compiles steps of one graph for two devices of this process.
struct StepsOnTwoDevices {
  StepsOnTwoDevices() {
    for (const std::shared_ptr<Device>& each : devices) {
      infos.push_back(each->info());
      here.push_back({&each->context(), each->collectives()});
    }
    client = infos.front();
    client.name = "/job:localhost/replica:0/task:0/device:CLIENT:0";
    client.type = "CLIENT";
  }

  static StepRequest request(const std::vector<AnyOutput>& feeds, const std::vector<AnyOutput>& fetches) {
    StepRequest request;
    for (const AnyOutput& feed : feeds) request.feeds.push_back(feed.endpoint());
    for (const AnyOutput& fetch : fetches) request.fetches.push_back(fetch.endpoint());
    return request;
  }

  DealtStep compile(const StepRequest& request, const StepObserver& observer = {}, const PassOptions& options = {}) {
    Placement placement(infos, kernels, false);
    return compile_step(*graph.store(), request, options, {placement, kernels, here, client, fusions, chains}, scratch,
                        observer);
  }

  Graph graph;
  std::vector<std::shared_ptr<Device>> devices = cpu_devices(2);
  std::vector<DeviceInfo> infos;
  std::vector<CollectiveDevice> here;
  std::vector<KernelTables> kernels = std::vector<KernelTables>(2, OpSet(standard_ops).kernels());
  DeviceInfo client;
  Fusions fusions;
  Chains chains;
  SparePruneScratch scratch;
};

bool has_op(const StepGraph& step, std::string_view op) {
  return std::any_of(step.nodes.begin(), step.nodes.end(), [&](const StepNode& node) { return node.op->name == op; });
}

}  // namespace

TEST_CASE("a compiled step has a part for each device that its nodes are placed on") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {2});
  Output<float> doubled, result;
  {
    const ScopeGuard on = steps.graph.device("/cpu:0");
    doubled = relu(x);
  }
  {
    const ScopeGuard on = steps.graph.device("/cpu:1");
    result = exp(doubled);
  }
  const DealtStep dealt = steps.compile(StepsOnTwoDevices::request({x}, {result}));
  REQUIRE(dealt.partitions.parts.size() == 2);
  for (const Partition& part : dealt.partitions.parts) {
    CHECK(has_op(part.graph, "Relu") == (part.device == 0));
    CHECK(has_op(part.graph, "Exp") == (part.device == 1));
  }
  CHECK_FALSE(dealt.uses_rendezvous);
  CHECK(dealt.needed_feeds.empty());
}

TEST_CASE("a step is shown optimised and placed before it is partitioned") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {});
  const ScopeGuard on = steps.graph.device("/cpu:1");
  const auto result = x * (constant(steps.graph, 2.0f) + constant(steps.graph, 3.0f));
  int shown = 0;
  auto note = [&](const StepGraph& step) {
    ++shown;
    CHECK_FALSE(has_op(step, "Add"));
    CHECK_FALSE(has_op(step, "_Send"));
    const auto product = std::find_if(step.nodes.begin(), step.nodes.end(),
                                      [](const StepNode& node) { return node.op->name == std::string_view("Mul"); });
    REQUIRE(product != step.nodes.end());
    CHECK(product->placed_on == 1);
  };
  FunctionRef<void(const StepGraph&)> observer(note);
  steps.compile(StepsOnTwoDevices::request({x}, {result}), {nullptr, &observer});
  CHECK(shown == 1);
}

TEST_CASE("a step for a partial run says which feeds each fetch needs") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {}), y = placeholder<float>(steps.graph, {});
  StepRequest request = StepsOnTwoDevices::request({x, y}, {relu(y), x + y});
  request.streams = true;
  CHECK(steps.compile(request).needed_feeds == std::vector<std::vector<bool>>{{false, true}, {true, true}});
}

TEST_CASE("a receive that nothing in the step sends to is refused") {
  StepsOnTwoDevices steps;
  const ScopeGuard on = steps.graph.device("/cpu:0");
  Recv::Attrs attrs;
  attrs.tensor_name = "lost";
  attrs.send_device = attrs.recv_device = steps.infos.front().name;
  const AnyOutput received = build<Recv>(*steps.graph.store(), {}, attrs, {}, type_args<float>());
  CHECK(code_of([&] { return steps.compile(StepsOnTwoDevices::request({}, {received})); }) == Code::invalid_argument);
}

TEST_CASE("a constant that the body of a function reads cannot be fed") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {});
  const auto two = constant(steps.graph, 2.0f);
  const auto result = cond(
      x > 0.0f, [&] { return x * two; }, [&] { return x; });
  const Status status = status_of([&] { return steps.compile(StepsOnTwoDevices::request({x, two}, {result})); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "cannot be fed"));
}

TEST_CASE("compiling a step ends with what its check throws") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {});
  auto give_up = [] { throw_error(Status::cancelled("stop was requested")); };
  FunctionRef<void()> check(give_up);
  const StepRequest request = StepsOnTwoDevices::request({x}, {relu(x)});
  CHECK(code_of([&] { return steps.compile(request, {&check, nullptr}); }) == Code::cancelled);
  CHECK(steps.compile(request).partitions.parts.size() == 1);
}

TEST_CASE("a compilation asks whether to go on while it inlines, and between all passes") {
  StepsOnTwoDevices steps;
  const auto x = placeholder<float>(steps.graph, {});
  auto last = function(steps.graph, "f0", [](Output<float> v) { return v + 1.0f; }, {.is_inlined = true});
  for (int level = 1; level < 12; ++level) {
    last = function(steps.graph, "f", [last](Output<float> v) { return last(last(v)); }, {.is_inlined = true});
  }
  const auto y = last(x);
  // A check that throws at its first call leaves no time for more than the first function.
  int num_checks = 0;
  const auto check = [&] { throw_error(Status::deadline_exceeded(str_cat("check ", ++num_checks))); };
  FunctionRef<void()> ref(check);
  const Status ended =
      status_of([&] { return steps.compile(StepsOnTwoDevices::request({x}, {y}), {.check = &ref}).uses_rendezvous; });
  CHECK(ended.code() == Code::deadline_exceeded);
  CHECK(mentions(ended, "op Call"));
}
