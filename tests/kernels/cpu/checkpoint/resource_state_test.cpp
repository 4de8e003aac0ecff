#include <dflow/kernels/cpu/checkpoint/resource_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<Device> device_of_seeds() {
  return std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = std::make_shared<InlinePool>()});
}

struct StreamNodes {
  AnyOutput state;
  Operation assign;
  Output<std::uint64_t> value;
};

StreamNodes stream_nodes(Graph& graph, const AnyOutput& random) {
  const RandomAttrs& attrs = random.node().attrs_as<RandomUniform>();
  const auto guard = graph.colocate_with(random);
  const AnyOutput handle = build<RandomStreamHandle>(
      *graph.store(), {}, {.node = random.node().name, .seed = attrs.seed, .seed2 = attrs.seed2});
  const auto value = placeholder<std::uint64_t>(graph, {3});
  return {build<ReadResourceState>({handle}, {.dtypes = {DType::uint64}}).output(0),
          build<AssignResourceState>({handle, value}, {.dtypes = {DType::uint64}}), value};
}

}  // namespace

TEST_CASE("a random op goes on elsewhere with the state of its stream, whether it was given seeds or drew them") {
  for (const std::uint64_t seed : {0u, 7u}) {
    Graph graph;
    const auto random = random_uniform<float>(graph, {5}, {.seed = seed});
    AnyOutput source = random;  // scaled or not, it comes from the node with the seeds
    while (source.node().op->name != RandomUniform::name) {
      source = AnyOutput(source.graph(), source.node().inputs[0]);
    }
    const StreamNodes nodes = stream_nodes(graph, source);
    Session here(graph, {.devices = {device_of_seeds()}}), there(graph, {.devices = {device_of_seeds()}});
    for (int i = 0; i < 3; ++i) here.run(random);
    const AnyTensor state = here.run(nodes.state);
    there.run({{nodes.value, state.as<std::uint64_t>()}}, nodes.assign);
    for (int i = 0; i < 3; ++i) CHECK(bitwise_equal(here.run(random), there.run(random)));
  }
}

TEST_CASE("a resource without a state, or with another one, is refused and keeps what it has") {
  Graph graph;
  const Variable<float> w(graph, 1.0f, {.name = "w"});
  const AnyOutput of_variable = build<ReadResourceState>({w.handle()}, {.dtypes = {DType::uint64}});
  Session session(graph);
  session.run(initialize_variables(graph));
  CHECK(code_of([&] { session.run(of_variable); }) == Code::invalid_argument);

  const AnyOutput handle = build<RandomStreamHandle>(*graph.store(), {}, {.node = "r", .seed = 3, .seed2 = 4});
  const AnyOutput state = build<ReadResourceState>({handle}, {.dtypes = {DType::uint64}});
  const AnyOutput other = build<ReadResourceState>({handle}, {.dtypes = {DType::float32}});
  const AnyOutput more = build<ReadResourceState>({handle}, {.dtypes = {DType::uint64, DType::uint64}});
  CHECK(code_of([&] { session.run(other); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run(more); }) == Code::invalid_argument);
  const AnyOutput two = constant(graph, Tensor<std::uint64_t>({2}, {1, 2}));
  const Operation assign = build<AssignResourceState>({handle, two}, {.dtypes = {DType::uint64}});
  CHECK(code_of([&] { session.run(assign); }) == Code::invalid_argument);
  CHECK(bitwise_equal(session.run(state), Tensor<std::uint64_t>({3}, {3, 4, 0})));
}
