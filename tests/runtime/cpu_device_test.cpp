#include <dflow/runtime/cpu_device.hpp>

#include <dflow/dflow.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <memory>
#include <string>
#include <vector>

using namespace dflow;

TEST_CASE("devices are counted up from the name's number and share their options", "[runtime][cpu_device]") {
  const auto pool = std::make_shared<InlinePool>();
  const auto devices = cpu_devices(3, {.name = "/job:ps/replica:0/task:2/device:CPU:4",
                                       .incarnation = 7,
                                       .pool = pool,
                                       .kernels = {.backend = cpu::CpuBackend::builtin}});
  REQUIRE(devices.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const DeviceContext& context = devices[i]->context();
    CHECK(context.name == str_cat("/job:ps/replica:0/task:2/device:CPU:", 4 + i));
    CHECK(context.incarnation == 7);
    CHECK(context.pool == pool.get());
    CHECK(context.state_as<CpuState>().options.backend == cpu::CpuBackend::builtin);
    CHECK(Cpu::check(context).ok());
  }
  CHECK(devices[0]->context().resources != devices[1]->context().resources);  // each has its own variables
  CHECK(cpu_devices(0).empty());
  CHECK(code_of([] { static_cast<void>(cpu_devices(-1)); }) == Code::invalid_argument);
  CHECK(code_of([] { static_cast<void>(cpu_devices(1, {.name = "/cpu:0"})); }) == Code::invalid_argument);
}

TEST_CASE("a session runs on CPU devices of other settings as on its own", "[runtime][cpu_device]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 2}, {.name = "x"});
  const auto y = matmul(x, x);
  const Tensor<float> in({2, 2}, {1, 2, 3, 4});
  Session own(graph, {.num_threads = 1});
  Session with_settings(graph, {.devices = cpu_devices(2, {.kernels = {.backend = cpu::CpuBackend::builtin}})});
  CHECK(bitwise_equal(own.run({{x, in}}, y), with_settings.run({{x, in}}, y)));
}

TEST_CASE("a device that keeps no state of the CPU's kernels is none of theirs", "[runtime][cpu_device]") {
  struct OtherState final : DeviceState {};
  OtherState other;
  CpuState state;
  CHECK(Cpu::check({.name = "d", .type = "CPU"}).code() == Code::invalid_argument);
  CHECK(Cpu::check({.name = "d", .type = "CPU", .state = &other}).code() == Code::invalid_argument);
  CHECK(Cpu::check({.name = "d", .type = "CPU", .state = &state}).ok());
}
