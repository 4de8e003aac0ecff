// The behaviour of a session with devices that break their promises, and with graphs that no device could run.
#include "support/proof_device.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using Catch::Contains;

namespace {

enum class Fault { none, throws, throws_after_storing, drops, calls_twice, fails, wrong_type };

/// Opens a gate when the last copy of the exception is gone: when it has been caught and looked at.
struct Lost : std::runtime_error {
  explicit Lost(std::promise<void>& gate)
      : std::runtime_error("the device was lost"), caught(&gate, [](auto* open) { open->set_value(); }) {}
  std::shared_ptr<std::promise<void>> caught;
};

/// The proof device with one fault at the end of a step, or in its copies to the host.
class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(Fault at_end, Fault in_copy = Fault::none)
      : at_end_(at_end), memory_(*inner_.context().memory, in_copy) {
    context_ = inner_.context();
    context_.memory = &memory_;
  }

  const KernelTable* kernels() const noexcept override { return inner_.kernels(); }
  std::unique_ptr<DeviceStep> begin_step() override { return inner_.begin_step(); }
  void end_step_async(DeviceStep* step, StepDone done) override {
    switch (at_end_) {
      case Fault::throws:
        throw std::runtime_error("the device was lost");
      case Fault::throws_after_storing:
        stored_ = std::move(done);
        later_ = std::thread([this] {
          caught_.get_future().wait();
          stored_(Status());
        });
        throw Lost(caught_);
      case Fault::drops:
        return;
      case Fault::calls_twice:
        done(Status());
        return done(Status::internal("again"));
      case Fault::fails:
        return done(Status::unavailable("the device is busy"));
      default:
        inner_.end_step_async(step, std::move(done));
    }
  }

  ~FaultyDevice() override {
    if (later_.joinable()) later_.join();
  }

 private:
  class Memory final : public DeviceMemory {
   public:
    Memory(DeviceMemory& inner, Fault fault) : inner_(inner), fault_(fault) {}
    Allocator& allocator() override { return inner_.allocator(); }
    void copy_in_async(const AnyTensor& host, CopyDone done) override { inner_.copy_in_async(host, std::move(done)); }
    void copy_out_async(const AnyTensor& tensor, Allocator& host, CopyDone done) override {
      switch (fault_) {
        case Fault::throws:
          throw Error(Status::resource_exhausted("the staging buffer is full"));
        case Fault::drops:
          return;
        case Fault::fails:
          return done(Status::unavailable("the device was lost"), AnyTensor());
        case Fault::wrong_type:
          return done(Status(), Tensor<std::int8_t>(Shape{2}));
        default:
          inner_.copy_out_async(tensor, host, std::move(done));
      }
    }

   private:
    DeviceMemory& inner_;
    const Fault fault_;
  };

  testing::ProofDevice inner_;
  const Fault at_end_;
  Memory memory_;
  StepDone stored_;
  std::promise<void> caught_;  ///< set when the exception is caught; then the stored completion is called
  std::thread later_;
};

struct OneNode {
  Graph graph;
  Output<float> x = placeholder<float>(graph, {2});
  Output<float> y = -x;
  const Tensor<float> value = Tensor<float>({2}, {1, 2});

  Status outcome(const std::shared_ptr<Device>& device) {
    Session session(graph, {.devices = {device}});
    try {
      const Tensor<float> result = session.run({{x, value}}, y);
      CHECK(result.span()[0] == -1.0f);
      CHECK(result.span()[1] == -2.0f);
    } catch (const Error& error) {
      return error.status();
    }
    return {};
  }
};

}  // namespace

TEST_CASE("a device that breaks off at the end of a step ends it with what it threw", "[session][devices]") {
  const Status status = OneNode().outcome(std::make_shared<FaultyDevice>(Fault::throws));
  CHECK(status.code() == Code::internal);
  CHECK_THAT(std::string(status.message()), Contains("the device was lost"));
}

TEST_CASE("a device that throws and calls later ends a step when it calls, with what it threw", "[session][devices]") {
  const Status status = OneNode().outcome(std::make_shared<FaultyDevice>(Fault::throws_after_storing));
  CHECK(status.code() == Code::internal);
  CHECK_THAT(std::string(status.message()), Contains("the device was lost"));
}

TEST_CASE("a device that forgets the end of a step ends it with Internal", "[session][devices]") {
  CHECK(OneNode().outcome(std::make_shared<FaultyDevice>(Fault::drops)).code() == Code::internal);
}

TEST_CASE("a device that ends a step twice ends it once", "[session][devices]") {
  CHECK(OneNode().outcome(std::make_shared<FaultyDevice>(Fault::calls_twice)).ok());
  CHECK(OneNode().outcome(std::make_shared<FaultyDevice>(Fault::fails)).code() == Code::unavailable);
}

TEST_CASE("a copy to the client that fails names the cause and the device", "[session][devices]") {
  const auto outcome = [](Fault fault) {
    return OneNode().outcome(std::make_shared<FaultyDevice>(Fault::none, fault));
  };
  CHECK(outcome(Fault::none).ok());
  const Status thrown = outcome(Fault::throws), failed = outcome(Fault::fails), wrong = outcome(Fault::wrong_type);
  CHECK(thrown.code() == Code::resource_exhausted);
  CHECK_THAT(thrown.to_string(), Contains("PROOF:0"));
  CHECK(failed.code() == Code::unavailable);
  CHECK_THAT(failed.to_string(), Contains("PROOF:0"));
  CHECK(wrong.code() == Code::internal);
  CHECK_THAT(wrong.to_string(), Contains("int8"));
  CHECK(outcome(Fault::drops).code() == Code::internal);
}

TEST_CASE("units of a step run on the widest pool, in whatever order its devices are given", "[session][devices]") {
  // A device that computes on a thread of its own may have a pool that runs everything in place.
  const auto pool = std::make_shared<WorkStealingPool>(3);
  for (const bool is_first : {true, false}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {2});
    Output<float> on_proof, on_cpu;
    {
      const auto on = graph.device("/device:PROOF:0");
      on_proof = x * 2.0f;
    }
    {
      const auto on = graph.device("/device:CPU:0");
      on_cpu = exp(x) + x;
    }
    const std::shared_ptr<Device> cpu = std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool});
    const std::shared_ptr<Device> proof = std::make_shared<testing::ProofDevice>();
    Session session(graph, {.devices = is_first ? std::vector{proof, cpu} : std::vector{cpu, proof}});
    // The asynchronous run comes back before the pool, which is kept busy, has run anything of it.
    std::promise<void> go;
    const std::shared_future<void> gate = go.get_future().share();
    for (int i = 0; i < 3; ++i) pool->schedule([gate] { gate.wait(); });
    std::promise<Status> ended;
    session.run_async(
        {{x, Tensor<float>({2}, {0, 0})}}, on_proof, on_cpu,
        [&](const Status& status, const Tensor<float>&, const Tensor<float>&) { ended.set_value(status); });
    auto outcome = ended.get_future();
    CHECK(outcome.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    go.set_value();
    CHECK(outcome.get().ok());
  }
}

TEST_CASE("fetches from other memories count as the client's, not as a device's", "[session][devices]") {
  for (const bool cpu_first : {true, false}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {-1});
    Output<float> y;
    {
      const auto on = graph.device("/device:PROOF:0");
      y = -x;
    }
    const std::shared_ptr<Device> small = std::make_shared<CpuDevice>(
        CpuDeviceOptions{.allocator = std::make_shared<LimitAllocator>(std::make_shared<CpuAllocator>(), 1 << 10)});
    const std::shared_ptr<Device> proof = std::make_shared<testing::ProofDevice>();
    Session session(graph, {.devices = cpu_first ? std::vector{small, proof} : std::vector{proof, small}});
    CHECK(session.run({{x, Tensor<float>(Shape{1 << 12})}}, y).shape() == Shape{1 << 12});
  }
}

TEST_CASE("of three receives the one that nothing in the step sends to is named, with its line", "[session]") {
  Graph graph;
  const auto x = constant(graph, 3.0f);
  std::vector<Operation> done;
  Operation missing;
  for (const char* name : {"a", "b", "c"}) {
    const Output<float> received(build<Recv>(*graph.store(), std::span<const AnyOutput>(),
                                             {name, "here", "there", 0, PartialShape::unknown()},
                                             {.name = std::string("recv_") + name}, type_args<float>()));
    done.push_back((-received).operation());
    const auto sent = build<Send>({x}, {name, "here", "there"}, {.name = std::string("send_") + name}).operation();
    (std::string_view(name) == "b" ? missing : done.emplace_back()) = sent;
  }
  Session session(graph, {.num_threads = 1});
  const std::string message = error_of([&] { session.run(group(done)); });
  CHECK(contains(message, "nothing in this step sends 'b' to 'recv_b'"));
  CHECK(contains(message, "device_faults_test.cpp"));
  done.push_back(missing);
  CHECK_NOTHROW(session.run(group(done)));
}

TEST_CASE("what sends to itself is refused", "[session]") {
  Graph graph;
  const Output<float> received(build<Recv>(*graph.store(), std::span<const AnyOutput>(),
                                           {"t", "a", "b", 0, PartialShape::unknown()}, {.name = "r"},
                                           type_args<float>()));
  const auto sent = build<Send>({received * 2.0f}, {"t", "a", "b"}, {.name = "s"});
  Session session(graph, {.num_threads = 1});
  CHECK_THROWS_WITH(session.run(sent.operation()), Contains("waits for 'r' itself"));
  // A sender that waits for a fed edge of the receiver does not.
  CHECK_NOTHROW(session.run({{received, Tensor<float>(1.0f)}}, sent.operation()));
}

TEST_CASE("edges that do not exist are refused", "[session]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  Session session(graph, {.num_threads = 1});
  const Feed feed{x, Tensor<float>(1.0f)};
  CHECK_THROWS_AS(session.run({feed}, AnyOutput(graph.store(), {y.node_id(), 5})), Error);
  CHECK_THROWS_AS(session.run({feed}, AnyOutput(graph.store(), {y.node_id(), -1})), Error);
  CHECK_THROWS_AS(session.run({feed}, AnyOutput(graph.store(), {NodeId(999'999), 0})), Error);
  CHECK_THROWS_AS(session.run({{AnyOutput(graph.store(), {NodeId(999'999), 0}), Tensor<float>(1.0f)}}, y), Error);
}
