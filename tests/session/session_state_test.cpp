#include <dflow/session/session_state.hpp>

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/device.hpp>

#include "catch.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Gives the number of its table, for any feed.
template <int table>
class Numbered final : public AnyKernel {
 public:
  explicit Numbered(const KernelInit&) : AnyKernel(KernelTraits{}) {}
  void run(KernelContext& context) const override { context.set_output(0, Tensor<float>(static_cast<float>(table))); }
};

KernelEntry numbered(const OpDef& op, int table) {
  const auto one = [](const KernelInit& init) -> std::unique_ptr<AnyKernel> {
    return std::make_unique<Numbered<1>>(init);
  };
  const auto two = [](const KernelInit& init) -> std::unique_ptr<AnyKernel> {
    return std::make_unique<Numbered<2>>(init);
  };
  return {.op = &op, .make = table == 1 ? KernelFactory(one) : KernelFactory(two)};
}

/// Computes in host memory, in the thread that calls.
class OwnDevice final : public Device {
 public:
  OwnDevice(std::string device, std::string type, std::vector<KernelTable> table = {}) : table_(std::move(table)) {
    context_.name = "/job:localhost/replica:0/task:0" + std::move(device);
    context_.type = std::move(type);
    context_.incarnation = 1;
    context_.allocator = context_.host_allocator = &default_cpu_allocator();
    context_.pool = &pool_;
    context_.resources = &resources_;
    said = Device::info();
  }
  DeviceInfo info() const override { return said; }
  const KernelTable* kernels() const noexcept override { return table_.empty() ? nullptr : table_.data(); }

  DeviceInfo said;

 private:
  InlinePool pool_;
  ResourceContainers resources_;
  std::vector<KernelTable> table_;
};

Status status_with(SessionOptions options) {
  Graph graph;
  try {
    const Session session(graph, std::move(options));
  } catch (const Error& error) {
    return error.status();
  }
  return {};
}

Status status_with(std::string device, std::string type, std::vector<KernelTable> table = {}) {
  return status_with({.devices = {std::make_shared<OwnDevice>(std::move(device), std::move(type), std::move(table))}});
}

}  // namespace

TEST_CASE("of two devices of one type each runs the kernels that it brings", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  Output<float> on_first, on_second, only_on_second;
  {
    const auto on = graph.device("/device:NPU:0");
    on_first = -x;
  }
  {
    const auto on = graph.device("/device:NPU:1");
    on_second = -x;
  }
  only_on_second = exp(x);
  const auto first =
      std::make_shared<OwnDevice>("/device:NPU:0", "NPU", std::vector{KernelTable("NPU", {numbered(op_def<Neg>, 1)})});
  const auto second = std::make_shared<OwnDevice>(
      "/device:NPU:1", "NPU", std::vector{KernelTable("NPU", {numbered(op_def<Neg>, 2), numbered(op_def<Exp>, 2)})});
  Session session(graph, {.devices = {first, second}});
  CHECK(session.run({{x, 5.0f}}, on_first).scalar() == 1);
  CHECK(session.run({{x, 5.0f}}, on_second).scalar() == 2);
  CHECK(session.run({{x, 5.0f}}, only_on_second).scalar() == 2);
  Session turned(graph, {.devices = {second, first}});
  CHECK(turned.run({{x, 5.0f}}, on_first).scalar() == 1);
  CHECK(turned.run({{x, 5.0f}}, on_second).scalar() == 2);
}

TEST_CASE("a device's name is its canonical one, and its type the name's", "[session][devices]") {
  CHECK(status_with("/device:NPU:0", "NPU").ok());
  CHECK(status_with("/device:GPU:0", "NPU").code() == Code::invalid_argument);
  CHECK(status_with("/device:NPU:0", "npu").code() == Code::invalid_argument);
  CHECK(status_with("/device:npu:0", "npu").code() == Code::invalid_argument);
  const Status status = status_with("/device:npu:0", "NPU");
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message().find("/job:localhost/replica:0/task:0/device:NPU:0") != std::string::npos);
}

TEST_CASE("a kernel table that no device would find is refused", "[session][devices]") {
  const auto table = [](std::string type) { return KernelTable(std::move(type), {numbered(op_def<Neg>, 1)}); };
  CHECK(status_with("/device:NPU:0", "NPU", {table("NPU")}).ok());
  CHECK(status_with("/device:NPU:0", "NPU", {table("GPU")}).code() == Code::invalid_argument);
  CHECK(status_with("/device:NPU:0", "NPU", {table("npu")}).code() == Code::invalid_argument);
  CHECK(status_with({.ops = {standard_ops, {table("npu")}}}).code() == Code::invalid_argument);
  CHECK(status_with({.ops = {standard_ops, {table("")}}}).code() == Code::invalid_argument);
  CHECK(status_with({.ops = {standard_ops, {table("NPU")}}}).ok());  // for sessions with and without an NPU
}

TEST_CASE("what a device says of itself is what it lends its kernels", "[session][devices]") {
  const auto status_of_saying = [](auto&& change) {
    const auto device = std::make_shared<OwnDevice>("/device:NPU:1", "NPU");
    change(device->said);
    return status_with({.devices = {device}});
  };
  CHECK(status_of_saying([](DeviceInfo&) {}).ok());
  CHECK(status_of_saying([](DeviceInfo& info) { info.name.back() = '7'; }).code() == Code::invalid_argument);
  CHECK(status_of_saying([](DeviceInfo& info) { info.type = "GPU"; }).code() == Code::invalid_argument);
  CHECK(status_of_saying([](DeviceInfo& info) { info.incarnation = 2; }).code() == Code::invalid_argument);
  CHECK(status_of_saying([](DeviceInfo& info) { info.memory = info.name; }).code() == Code::invalid_argument);
}

TEST_CASE("a device of type CPU without the state of the CPU's kernels is refused", "[session][devices]") {
  const Status status = status_with("/device:CPU:0", "CPU");
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message().find("CpuDevice") != std::string::npos);
  // If the session was given no kernels of the library for the device, the device may keep any state.
  CHECK(status_with(
            {.ops = {OpTable(standard_ops), {}}, .devices = {std::make_shared<OwnDevice>("/device:CPU:0", "CPU")}})
            .ok());
}
