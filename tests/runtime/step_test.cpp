#include <dflow/runtime/step.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/step_handle.hpp>

#include "catch.hpp"
#include "runtime/planned.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace dflow;
using dflow::testing::Planned;

namespace {

/// Dead for negative numbers.
struct AliveIfPositive : Op<"AliveIfPositive", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

}  // namespace

template <>
struct dflow::Kernel<AliveIfPositive, dflow::Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const {
    if (context.input<float>(0).scalar() < 0) return context.set_output_dead(0);
    context.set_output(0, context.input(0));
  }
};

namespace {

Planned planned_on(int threads) { return {standard_ops, std::make_shared<WorkStealingPool>(threads)}; }

}  // namespace

TEST_CASE("a sequential plan runs in the calling thread, again and again", "[runtime][step]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  const auto y = x * 2.0f, z = y + x;
  Planned planned = planned_on(1);
  const auto plan = planned.plan(graph, {x}, {y, z, y}, false, InterOp::sequential);
  CHECK(plan->is_sequential());
  const auto step = std::make_shared<Step>(plan);
  for (int i = 0; i < 3; ++i) {
    step->feed(0, Tensor<float>({2}, {1, static_cast<float>(i)}));
    CHECK(step->run_sequential().ok());
    CHECK(step->fetch(0).span<float>()[1] == 2 * static_cast<float>(i));
    CHECK(step->take_fetch(1).span<float>()[0] == 3);
    CHECK(step->take_fetch(0).is_initialized());
    CHECK(step->take_fetch(2).is_initialized());
    step->reset(false);
  }
}

TEST_CASE("a slot that held a dead tensor holds a living one of the next node, or of the next run", "[runtime][step]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const auto doubled = apply<AliveIfPositive>(x) * 2.0f;  // the slots of both are free then
  Output<float> later;
  {
    const auto after = graph.control_dependencies({doubled.operation()});
    later = y + 1.0f;
  }
  const auto last = later * 3.0f - 1.0f;
  for (const InterOp inter_op : {InterOp::sequential, InterOp::parallel}) {
    Planned planned{standard_ops + ops<AliveIfPositive>, std::make_shared<WorkStealingPool>(1)};
    const auto plan = planned.plan(graph, {x, y}, {last, doubled}, false, inter_op);
    const auto free_plan = planned.plan(graph, {x, y}, {last}, false, inter_op);
    const auto step = std::make_shared<Step>(plan), free_step = std::make_shared<Step>(free_plan);
    for (const float value : {-1.0f, 1.0f, -2.0f}) {
      for (const auto& run : {free_step, step}) {
        run->feed(0, Tensor<float>(value));
        run->feed(1, Tensor<float>(4.0f));
        std::promise<Status> ended;
        run->start(planned.queue, [&](const Status& status) { ended.set_value(status); });
        CHECK(ended.get_future().get().ok());
        REQUIRE_FALSE(run->is_fetch_dead(0));
        CHECK(run->fetch(0).span<float>()[0] == 14);
      }
      CHECK(step->is_fetch_dead(1) == (value < 0));
      for (const auto& run : {free_step, step}) run->reset(false);
    }
  }
}

TEST_CASE("late feeds may come in any order, and fetches leave as soon as they are made", "[runtime][step]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  const auto early = a * 2.0f, late = early + b, constant_one = constant(graph, 1.0f) * 1.0f;
  for (const bool b_first : {false, true}) {
    Planned planned = planned_on(2);
    const auto plan = planned.plan(graph, {a, b}, {early, late, a, constant_one}, true);
    CHECK(plan->streams());
    for (int round = 0; round < 5; ++round) {
      const auto step = std::make_shared<Step>(plan);
      std::mutex mutex;
      std::vector<std::size_t> made;
      std::promise<void> early_made, ended;
      step->set_on_fetch([&](std::size_t fetch) {
        const std::lock_guard lock(mutex);
        made.push_back(fetch);
        if (fetch == 0) early_made.set_value();
      });
      step->start(planned.queue, [&](const Status& status) {
        CHECK(status.ok());
        ended.set_value();
      });
      step->feed_late(b_first ? 1 : 0, Tensor<float>(b_first ? 10.0f : 1.0f));
      if (!b_first) {
        early_made.get_future().wait();
        const std::lock_guard lock(mutex);
        CHECK(std::find(made.begin(), made.end(), 1u) == made.end());
      }
      step->feed_late(b_first ? 0 : 1, Tensor<float>(b_first ? 1.0f : 10.0f));
      ended.get_future().wait();
      std::sort(made.begin(), made.end());
      CHECK(made == std::vector<std::size_t>{0, 1, 2, 3});
      CHECK(step->fetch(1).span<float>()[0] == 12);
    }
  }
}

TEST_CASE("feeds that are given up end a step that failed", "[runtime][step]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  const auto y = a + b;
  Planned planned = planned_on(2);
  const auto step = std::make_shared<Step>(planned.plan(graph, {a, b}, {y}, true));
  CancellationSource source;
  step->context().cancellation = source.token();
  std::promise<Status> ended;
  step->start(planned.queue, [&](const Status& status) { ended.set_value(status); });
  step->feed_late(0, Tensor<float>(1.0f));
  source.cancel(Status::data_loss("no more"));
  step->give_up_feeds();
  step->give_up_feeds();
  step->feed_late(1, Tensor<float>(1.0f));  // too late, and no harm
  CHECK(ended.get_future().get().code() == Code::data_loss);
}

TEST_CASE("a plan refuses what it cannot run, with the node", "[runtime][step]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  const auto y = x * 2.0f;
  Planned planned = planned_on(1);
  const auto status_of_plan = [&](StepGraph step_graph, const OpSet& ops) {
    PlanOptions options;
    options.kernels = &ops.kernels();
    options.device = &planned.device->context();
    try {
      static_cast<void>(Plan::compile(std::move(step_graph), options));
    } catch (const Error& error) {
      return error.status();
    }
    return Status();
  };
  const Endpoint feed[] = {x.endpoint()}, fetch[] = {y.endpoint()};
  CHECK(status_of_plan(prune(*graph.store(), feed, fetch, {}), planned.ops).ok());
  const Status unfed = status_of_plan(prune(*graph.store(), {}, fetch, {}), planned.ops);
  CHECK(unfed.code() == Code::invalid_argument);
  CHECK(unfed.node() == "x");
  CHECK(status_of_plan(prune(*graph.store(), feed, fetch, {}), ops<Identity>).code() == Code::not_found);
  StepGraph reversed = prune(*graph.store(), feed, fetch, {});
  for (const StepNodeId id : reversed.nodes.indices()) {
    if (reversed.node(id).op->name == "Mul") reversed.inputs_of(reversed.node(id))[0].node = id;
  }
  CHECK(status_of_plan(std::move(reversed), planned.ops).code() == Code::invalid_argument);
}

TEST_CASE("making a plan looks at the time now and then", "[runtime][step]") {
  Graph graph;
  Output<float> y = placeholder<float>(graph, {});
  const Endpoint feed[] = {y.endpoint()};
  for (int i = 0; i < 2000; ++i) y = y * 2.0f;
  const Endpoint fetch[] = {y.endpoint()};
  Planned planned = planned_on(1);
  int looks = 0;
  auto check = [&] {
    if (++looks == 3) throw Error(Status::deadline_exceeded("enough"));
  };
  FunctionRef<void()> check_ref(check);
  PlanOptions options;
  options.kernels = &planned.ops.kernels();
  options.device = &planned.device->context();
  options.check = &check_ref;
  CHECK_THROWS_AS(Plan::compile(prune(*graph.store(), feed, fetch, {}), options), Error);
  CHECK(looks == 3);
}

TEST_CASE("kernels that keep state are kept by device and node", "[runtime][step]") {
  KeptKernels kept;
  struct Nothing final : AnyKernel {
    Nothing() : AnyKernel(KernelTraits{}) {}
    void run(KernelContext&) const override {}
  };
  const auto a = std::make_shared<Nothing>(), b = std::make_shared<Nothing>();
  CHECK(kept.find("/cpu:0", "n") == nullptr);
  CHECK(kept.keep("/cpu:0", "n", a) == a);
  CHECK(kept.keep("/cpu:0", "n", b) == a);
  CHECK(kept.keep("/cpu:1", "n", b) == b);
  CHECK(kept.find("/cpu:0", "n") == a);
  CHECK(kept.find("/cpu:0n", "") == nullptr);
}

namespace {

/// Counts the begins and ends of steps on it.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(const Device& like) { context_ = like.context(); }
  std::unique_ptr<DeviceStep> begin_step() override {
    ++begun;
    return std::make_unique<DeviceStep>();
  }
  void end_step_async(DeviceStep* step, StepDone done) override {
    ++ended;
    Device::end_step_async(step, std::move(done));
  }
  std::atomic<int> begun{0}, ended{0};
};

}  // namespace

TEST_CASE("parts of steps within a step have its device step, which ends with the outer part", "[runtime][step]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {});
  Planned planned = planned_on(2);
  const auto plan = planned.plan(graph, {a}, {a * 2.0f});
  CountingDevice device(*planned.device);
  const auto make = [&](float value) {
    auto step = std::make_shared<Step>(plan);
    step->feed(0, Tensor<float>(value));
    return step;
  };
  const auto outer_step = make(1);
  const auto outer = std::make_shared<StepHandle>(StepHandle::Options{.id = 3});
  const auto outer_part = std::make_shared<LocalPart>(device, outer_step, planned.queue);
  outer->add_part(outer_part);
  /// Runs three steps within the outer one before it ends.
  struct Caller final : StepPart {
    std::function<void(const std::shared_ptr<StepHandle>&)> call;
    void start(StepHandle& handle, Done done) override {
      call(handle.shared_from_this());
      done(Status());
    }
    void cancel(const Status&) override {}
  };
  const auto caller = std::make_shared<Caller>();
  caller->call = [&](const std::shared_ptr<StepHandle>& within) {
    for (int i = 0; i < 3; ++i) {
      const auto step = make(static_cast<float>(i));
      const auto inner = std::make_shared<StepHandle>(StepHandle::Options{.outer = within});
      const auto part = std::make_shared<LocalPart>(device, step, planned.queue, outer_part->device_step());
      inner->add_part(part);
      std::promise<Status> ended;
      inner->start([&](const Status& status) { ended.set_value(status); });
      CHECK(ended.get_future().get().ok());
      CHECK(step->context().step_id == 3);
      CHECK(part->device_step() == outer_part->device_step());
      CHECK(step->fetch(0).span<float>()[0] == 2 * static_cast<float>(i));
    }
  };
  outer->add_part(caller);
  std::promise<Status> ended;
  outer->start([&](const Status& status) { ended.set_value(status); });
  CHECK(ended.get_future().get().ok());
  CHECK(device.begun == 1);
  CHECK(device.ended == 1);
}

TEST_CASE("a late feed may come before its part is started", "[runtime][step]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  Planned planned = planned_on(2);
  const auto step = std::make_shared<Step>(planned.plan(graph, {a, b}, {a + b}, true));
  const auto handle = std::make_shared<StepHandle>(StepHandle::Options{});
  /// Started before the other, and feeds it.
  struct Feeder final : StepPart {
    std::shared_ptr<LocalPart> fed;
    void start(StepHandle&, Done done) override {
      fed->feed_late(1, Tensor<float>(2.0f));
      done(Status());
    }
    void cancel(const Status&) override {}
  };
  const auto feeder = std::make_shared<Feeder>();
  feeder->fed = std::make_shared<LocalPart>(*planned.device, step, planned.queue);
  handle->add_part(feeder);
  handle->add_part(feeder->fed);
  std::promise<Status> ended;
  handle->start([&](const Status& status) { ended.set_value(status); });
  feeder->fed->feed_late(0, Tensor<float>(1.0f));
  CHECK(ended.get_future().get().ok());
  CHECK(step->fetch(0).span<float>()[0] == 3);
}

TEST_CASE("a part that was cancelled before it is started does not wait for its feeds", "[runtime][step]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  /// Started before the other, and fails.
  struct Failing final : StepPart {
    void start(StepHandle&, Done done) override { done(Status::data_loss("by the test")); }
    void cancel(const Status&) override {}
  };
  for (const bool by_another_part : {false, true}) {
    Planned planned = planned_on(2);
    const auto step = std::make_shared<Step>(planned.plan(graph, {a, b}, {a + b}, true));
    const auto handle = std::make_shared<StepHandle>(StepHandle::Options{});
    const auto part = std::make_shared<LocalPart>(*planned.device, step, planned.queue);
    if (by_another_part) handle->add_part(std::make_shared<Failing>());
    handle->add_part(part);
    if (!by_another_part) handle->cancel(Status::data_loss("by the test"));
    part->feed_late(0, Tensor<float>(1.0f));
    std::promise<Status> ended;
    handle->start([&](const Status& status) { ended.set_value(status); });
    CHECK(ended.get_future().get().code() == Code::data_loss);
  }
}
