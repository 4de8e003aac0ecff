#include <dflow/runtime/plan/plan_constants.hpp>

#include "support/proof_device.hpp"

#include <dflow/core/device_memory.hpp>
#include <dflow/dflow.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/plan.hpp>

#include "catch.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using detail::bring_constants;
using detail::BroughtConstants;

namespace {

/// Keeps its copies until `answer` is called.
class PatientMemory final : public DeviceMemory {
 public:
  Allocator& allocator() override { return default_cpu_allocator(); }
  void copy_in_async(const AnyTensor& host, CopyDone done) override {
    if (throws_at == static_cast<std::ptrdiff_t>(started)) throw Error(Status::unavailable("no copies today"));
    ++started;
    waiting.emplace_back(host, std::move(done));
    if (on_start) on_start();
  }
  void copy_out_async(const AnyTensor&, Allocator&, CopyDone done) override {
    done(Status::unimplemented("in only"), AnyTensor());
  }

  void answer() {
    for (auto& [host, done] : std::exchange(waiting, {})) done(Status(), host.deep_copy());
  }

  std::size_t started = 0;
  std::ptrdiff_t throws_at = -1;
  std::vector<std::pair<AnyTensor, CopyDone>> waiting;
  std::function<void()> on_start;
};

struct Place {
  explicit Place(std::shared_ptr<ThreadPool> of = std::make_shared<InlinePool>()) : pool(std::move(of)) {
    device.name = "/job:localhost/replica:0/task:0/device:FAR:0";
    device.memory = &memory;
    device.pool = pool.get();
  }
  std::shared_ptr<ThreadPool> pool;
  PatientMemory memory;
  DeviceContext device;
};

/// A device with a PatientMemory. Its kernels are never run.
class FarDevice final : public Device {
 public:
  FarDevice() {
    context_.name = "/job:localhost/replica:0/task:0/device:FAR:0";
    context_.type = "FAR";
    context_.incarnation = 1;
    context_.allocator = context_.host_allocator = &default_cpu_allocator();
    context_.pool = &pool_;
    context_.resources = &resources_;
    context_.memory = &memory;
  }
  const KernelTable* kernels() const noexcept override { return &kernels_; }

  PatientMemory memory;

 private:
  struct Nothing final : AnyKernel {
    void run(KernelContext&) const override {}
  };
  static KernelTable table() {
    std::vector<KernelEntry> entries;
    for (const char* name : {"Neg", "_Send", "_Recv"}) entries.push_back(*standard_cpu_kernels().find(name));
    entries[0].make = [](const KernelInit&) -> std::unique_ptr<AnyKernel> { return std::make_unique<Nothing>(); };
    return KernelTable("FAR", std::move(entries));
  }

  InlinePool pool_;
  ResourceContainers resources_;
  KernelTable kernels_ = table();
};

std::vector<AnyTensor> numbers(int count) {
  std::vector<AnyTensor> tensors;
  for (int i = 0; i < count; ++i) tensors.emplace_back(Tensor<float>(static_cast<float>(i)));
  return tensors;
}

float value_of(const DeviceConstants::Ref& constant) { return constant->here.span<float>()[0]; }

}  // namespace

TEST_CASE("all copies of constants are under way before one is waited for", "[runtime][constants]") {
  Place place;
  const std::vector<AnyTensor> hosts = numbers(100);
  place.memory.on_start = [&] {
    if (place.memory.started == hosts.size()) place.memory.answer();
  };
  const BroughtConstants brought = bring_constants(place.device, hosts, nullptr, {});
  CHECK(brought.status.ok());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    CHECK(value_of(brought.constants[i]) == static_cast<float>(i));
    CHECK(!brought.constants[i]->here.shares_buffer_with(hosts[i]));
  }
}

TEST_CASE("the worker that waits for constants runs the copies of its own pool", "[runtime][constants]") {
  Place place(std::make_shared<WorkStealingPool>(1));
  const std::vector<AnyTensor> hosts = numbers(3);
  place.memory.on_start = [&] {
    if (place.memory.started == hosts.size()) place.pool->schedule([&] { place.memory.answer(); });
  };
  std::promise<BroughtConstants> ended;
  place.pool->schedule([&] { ended.set_value(bring_constants(place.device, hosts, nullptr, {})); });
  const BroughtConstants brought = ended.get_future().get();
  CHECK(brought.status.ok());
  CHECK(value_of(brought.constants[2]) == 2);
}

TEST_CASE("a deadline ends waiting for constants, and what comes later does no harm", "[runtime][constants]") {
  VirtualClock clock;
  Place place;
  std::thread time([&] {
    while (clock.next_deadline() == Clock::never) std::this_thread::yield();
    clock.advance(std::chrono::seconds(2));
  });
  const BroughtConstants late =
      bring_constants(place.device, numbers(2), nullptr, {&clock, clock.after(std::chrono::seconds(1))});
  time.join();
  CHECK(late.status.code() == Code::deadline_exceeded);
  CHECK(late.failed == -1);
  place.memory.answer();
  // In time there is no timer left behind.
  place.memory.on_start = [&] { place.memory.answer(); };
  CHECK(bring_constants(place.device, numbers(2), nullptr, {&clock, clock.after(std::chrono::seconds(1))}).status.ok());
  CHECK(clock.next_deadline() == Clock::never);
}

TEST_CASE("a request to stop ends waiting for constants", "[runtime][constants]") {
  Place place;
  std::stop_source before;
  before.request_stop();
  CHECK(bring_constants(place.device, numbers(2), nullptr, {nullptr, Clock::never, before.get_token()}).status.code() ==
        Code::cancelled);
  std::stop_source meanwhile;
  std::thread stopper([&] { meanwhile.request_stop(); });
  CHECK(bring_constants(place.device, numbers(2), nullptr, {nullptr, Clock::never, meanwhile.get_token()})
            .status.code() == Code::cancelled);
  stopper.join();
}

TEST_CASE("a constant whose copy fails or is forgotten is named", "[runtime][constants]") {
  Place place;
  place.memory.on_start = [&] {
    if (place.memory.started == 3) place.memory.waiting[1].second(Status::resource_exhausted("full"), AnyTensor());
  };
  BroughtConstants brought = bring_constants(place.device, numbers(3), nullptr, {});
  CHECK(brought.status.code() == Code::resource_exhausted);
  CHECK(brought.failed == 1);
  place.memory.on_start = [&] {
    if (place.memory.waiting.size() == 3) place.memory.waiting.pop_back();
  };
  place.memory.waiting.clear();
  brought = bring_constants(place.device, numbers(3), nullptr, {});
  CHECK(brought.status.code() == Code::internal);
  CHECK(brought.failed == 2);
  place.memory.on_start = nullptr;
  place.memory.started = 0;
  place.memory.throws_at = 1;
  try {
    bring_constants(place.device, numbers(3), nullptr, {});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::unavailable);
  }
}

TEST_CASE("an error of a constant's copy names the constant's node", "[runtime][constants]") {
  Place place;
  const OpSet ops = standard_ops;
  StepGraph graph;
  {
    Graph whole;
    const auto c = constant(whole, 1.0f, {.name = "weights"});
    const StepNodeId id = graph.append(c.node(), 0);
    graph.fetches.push_back({id, 0});
  }
  place.memory.on_start = [&] { place.memory.waiting[0].second(Status::resource_exhausted("full"), AnyTensor()); };
  PlanOptions options;
  options.kernels = &ops.kernels();
  options.device = &place.device;
  try {
    static_cast<void>(Plan::compile(std::move(graph), options));
    FAIL("it was compiled");
  } catch (const Error& error) {
    CHECK(error.code() == Code::resource_exhausted);
    CHECK(error.status().node() == "weights");
  }
}

TEST_CASE("a constant is in a device's memory once, as long as somebody reads it there", "[runtime][constants]") {
  Place here, there;
  for (Place* place : {&here, &there}) place->memory.on_start = [place] { place->memory.answer(); };
  DeviceConstants shared;
  const std::vector<AnyTensor> hosts = numbers(2);
  BroughtConstants first = bring_constants(here.device, hosts, &shared, {});
  const BroughtConstants second = bring_constants(here.device, hosts, &shared, {});
  CHECK(here.memory.started == 2);
  CHECK(first.constants == second.constants);
  CHECK(shared.size() == 2);
  CHECK(shared.find(there.device, hosts[0]) == nullptr);
  CHECK(shared.find(here.device, hosts[0].reshaped({1})) == nullptr);
  bring_constants(there.device, hosts, &shared, {});
  CHECK(there.memory.started == 2);
  CHECK(shared.size() == 2);  // nobody has kept the copies of `there`
  // The second caller uses the copy that the first caller has brought.
  const auto again =
      std::make_shared<const DeviceConstants::Copy>(DeviceConstants::Copy{hosts[0], hosts[0].deep_copy()});
  CHECK(shared.keep(here.device, again) == first.constants[0]);
  // Nothing identifies a tensor without elements.
  const AnyTensor empty(DType::float32, Shape({0}));
  const auto nothing = std::make_shared<const DeviceConstants::Copy>(DeviceConstants::Copy{empty, empty});
  CHECK(shared.keep(here.device, nothing) == nothing);
  CHECK(shared.find(here.device, empty) == nullptr);
  for (int i = 0; i < 1000; ++i) bring_constants(here.device, numbers(1), &shared, {});
  CHECK(shared.size() == 2);
  CHECK(shared.find(here.device, hosts[1]) == first.constants[1]);
}

TEST_CASE("steps of a session share a device's copy of a constant", "[runtime][constants]") {
  constexpr std::int64_t size = 1 << 16;
  Graph graph;
  const auto x = placeholder<float>(graph, {size});
  const auto weights = constant(graph, Tensor<float>::full({size}, 2.0f));
  const auto device = std::make_shared<testing::ProofDevice>();
  const auto in_use = [&] { return device->context().allocator->stats().bytes_in_use; };
  const Tensor<float> in = Tensor<float>::full({size}, 3.0f);
  Session session(graph, {.devices = {device}});
  for (int i = 0; i < 30; ++i)
    CHECK(session.run({{x, in}}, weights * x + static_cast<float>(i))(0) == 6 + static_cast<float>(i));
  session.release_memory();
  CHECK(in_use() < 2 * size * sizeof(float));
}

TEST_CASE("a run that is stopped or late while its constants are copied ends", "[runtime][constants]") {
  Graph graph;
  const auto y = neg(constant(graph, 1.0f));
  const auto code_of_run = [&](FarDevice& device, std::shared_ptr<Clock> clock, RunOptions run) {
    auto shared = std::shared_ptr<Device>(&device, [](Device*) {});
    Session session(graph, {.devices = {shared}, .passes = {.constant_folding = false}, .clock = std::move(clock)});
    try {
      session.run(run, {}, y);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::ok;
  };
  {
    FarDevice device;
    std::stop_source source;
    device.memory.on_start = [&] { source.request_stop(); };
    CHECK(code_of_run(device, nullptr, {.stop = source.get_token()}) == Code::cancelled);
    CHECK(device.memory.started == 1);
  }
  {
    FarDevice device;
    const auto clock = std::make_shared<VirtualClock>();
    device.memory.on_start = [&] { clock->advance(std::chrono::seconds(2)); };
    CHECK(code_of_run(device, clock, {.deadline = std::chrono::seconds(1)}) == Code::deadline_exceeded);
    CHECK(device.memory.started == 1);
  }
}
