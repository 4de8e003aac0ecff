#include <dflow/runtime/default_devices.hpp>

#include <dflow/op/op_table.hpp>
#include <dflow/runtime/default_kernels.hpp>
#include <dflow/runtime/device.hpp>

#include "catch.hpp"

#include <memory>
#include <string>

using namespace dflow;

TEST_CASE("default devices share a pool and an allocator, and run the default kernels", "[runtime][default_devices]") {
  const auto pool = std::make_shared<InlinePool>();
  const auto devices = make_default_devices({.count = 2, .incarnation = 3, .pool = pool});
  REQUIRE(devices.size() == 2);
  const KernelTables given({default_kernels(standard_ops)});
  for (std::size_t i = 0; i < 2; ++i) {
    const DeviceContext& context = devices[i]->context();
    CHECK(context.name == str_cat("/job:localhost/replica:0/task:0/device:CPU:", i));
    CHECK(context.incarnation == 3);
    CHECK(context.pool == pool.get());
    CHECK(given.for_device(context, devices[i]->kernels()).find(context.type, "MatMul") != nullptr);
  }
}
