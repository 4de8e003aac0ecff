#include <dflow/runtime/device.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/step.hpp>

#include "catch.hpp"

#include <memory>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Host memory by another name, which counts the copies into it.
class OtherMemory final : public DeviceMemory {
 public:
  Allocator& allocator() override { return allocator_; }
  void copy_in_async(const AnyTensor& host, CopyDone done) override { done(Status(), host.deep_copy()); }
  void copy_out_async(const AnyTensor& here, Allocator&, CopyDone done) override { done(Status(), here.deep_copy()); }

 private:
  CpuAllocator allocator_;
};

class FailedStep final : public DeviceStep {
 public:
  void status_async(StatusDone done) override { done(Status::internal("late")); }
};

class OtherDevice final : public Device {
 public:
  explicit OtherDevice(int id, OtherMemory* memory) {
    context_.name = str_cat("/job:localhost/replica:0/task:0/device:OTHER:", id);
    context_.type = "OTHER";
    context_.memory = memory;
    context_.allocator = memory == nullptr ? &default_cpu_allocator() : &memory->allocator();
    context_.host_allocator = &default_cpu_allocator();
    context_.pool = &pool_;
    context_.resources = &resources_;
  }
  std::unique_ptr<DeviceStep> begin_step() override { return std::make_unique<FailedStep>(); }

 private:
  InlinePool pool_;
  ResourceContainers resources_;
};

/// An output for each of a list, each from the allocator that the context has for it.
struct AllocatesOutputs final : AnyKernel {
  void run(KernelContext& context) const override {
    for (int o = 0; o < context.num_outputs(); ++o) {
      const bool on_host = &context.output_allocator(o) == context.device().host_allocator;
      context.set_output(o, Tensor<float>(on_host ? 1.0f : 0.0f));
    }
  }
};

}  // namespace

TEST_CASE("devices with one memory object are in one memory", "[runtime][device]") {
  OtherMemory memory, another;
  const OtherDevice a(0, &memory), b(1, &memory), c(2, &another), host(3, nullptr);
  const CpuDevice cpu({});
  CHECK(memory_of(a.info()) == memory_of(b.info()));
  CHECK(memory_of(a.info()) != memory_of(c.info()));
  CHECK(memory_of(a.info()) != host_memory_of(a.info()));
  CHECK(memory_of(host.info()) == memory_of(cpu.info()));
  CHECK(host_memory_of(a.info()) == memory_of(cpu.info()));
}

TEST_CASE("a device says how many threads it has, and its memory's limit", "[runtime][device]") {
  const CpuDevice cpu({});
  CHECK(cpu.info().attributes.at("threads") == str_cat(cpu.context().pool->num_threads()));
  CHECK_FALSE(cpu.info().attributes.contains("memory_limit_bytes"));
  const CpuDevice limited({.allocator = std::make_shared<LimitAllocator>(std::make_shared<CpuAllocator>(), 4096)});
  CHECK(limited.info().attributes.at("memory_limit_bytes") == "4096");
}

TEST_CASE("at the end of its part a device's step is asked how it was", "[runtime][device]") {
  OtherDevice device(0, nullptr);
  Status status;
  device.end_step_async(device.begin_step().get(), [&](Status late) { status = std::move(late); });
  CHECK(status.message() == "late");
  device.end_step_async(nullptr, [&](Status late) { status = std::move(late); });
  CHECK(status.ok());
}

TEST_CASE("a long list of outputs is in host memory where its argument is", "[runtime][device]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {90});
  const auto rows = unpack(x, 90);
  std::vector<Endpoint> feeds{x.endpoint()}, fetches;
  for (const auto& row : rows) fetches.push_back(row.endpoint());
  KernelEntry entry;
  entry.op = rows[0].node().op;
  entry.make = [](const KernelInit&) -> std::unique_ptr<AnyKernel> { return std::make_unique<AllocatesOutputs>(); };
  OtherMemory memory;
  const OtherDevice device(0, &memory);
  for (const bool on_host : {true, false}) {
    entry.host_outputs = on_host ? 1 : 0;
    const KernelTables kernels({KernelTable("OTHER", {entry})});
    PlanOptions options;
    options.kernels = &kernels;
    options.device = &device.context();
    Step step(Plan::compile(prune(*graph.store(), feeds, fetches, {}), options));
    step.feed(0, Tensor<float>({90}, std::vector<float>(90)));
    throw_if_error(step.run_sequential());
    for (std::size_t f = 0; f < fetches.size(); ++f) CHECK(step.take_fetch(f).span<float>()[0] == (on_host ? 1 : 0));
  }
}
