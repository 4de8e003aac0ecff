// Allocations of the passes: how many there are, and the state that is left behind when one fails.
#include <dflow/passes/place.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

Placement on_one_device() {
  DeviceInfo cpu;
  cpu.name = "/job:localhost/replica:0/task:0/device:CPU:0";
  cpu.type = "CPU";
  return Placement({cpu}, {KernelTables()}, false);
}

}  // namespace

TEST_CASE("a graph that grows node by node is placed with few allocations", "[passes][place]") {
  Graph graph;
  Placement placement = on_one_device();
  constexpr int many = 1 << 20;
  int allocations = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto x = placeholder<float>(graph, {});
    failing_new::fails_in = many;
    placement.extend(*graph.store());
    allocations += many - std::exchange(failing_new::fails_in, 0);
    REQUIRE(placement.device_of(x.node_id()) == 0);
  }
  CHECK(allocations < 200);  // storage grows by a factor
}

TEST_CASE("a placement that runs out of memory can be extended again", "[passes][place]") {
  Graph graph;
  AnyOutput last;
  for (int i = 0; i < 100; ++i) last = placeholder<float>(graph, {});
  failing_new::fail_each([&] {
    Placement placement = on_one_device();
    try {
      placement.extend(*graph.store());
    } catch (const std::bad_alloc&) {
    }
    const int fails_in = std::exchange(failing_new::fails_in, 0);
    placement.extend(*graph.store());
    CHECK(placement.device_of(last.node_id()) == 0);
    failing_new::fails_in = fails_in;
  });
}
