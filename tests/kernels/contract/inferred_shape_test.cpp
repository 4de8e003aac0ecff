#include <dflow/kernels/contract/inferred_shape.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>

using namespace dflow;

TEST_CASE("The inferred shapes are those of the outputs that a node has, for the shapes and values of the step") {
  Graph graph;
  const auto axis = placeholder<std::int32_t>(graph, {});
  const auto x = placeholder<float>(graph);
  const BuiltNode built = build<Split>({axis, x}, {.num_split = 2});
  AnyTensor slots[4] = {Tensor<std::int32_t>(1), Tensor<float>({3, 4}), {}, {}};
  const SlotId wires[] = {SlotId(0), SlotId(1)};
  const KernelContext::Wiring wiring{
      .node = &built.output(0).node(), .inputs = wires, .num_inputs = 2, .first_output = SlotId(2), .num_outputs = 2};
  const DeviceContext device;
  const StepContext step;
  const KernelContext context(slots, wiring, device, step);
  CHECK(detail::inferred_shape(context) == Shape{3, 2});
  CHECK(detail::inferred_shape(context, 1) == Shape{3, 2});
  const auto code_of = [&](int o) {
    try {
      static_cast<void>(detail::inferred_shape(context, o));
    } catch (const Error& error) {
      return error.code();
    }
    return Code::ok;
  };
  CHECK(code_of(2) == Code::invalid_argument);
  CHECK(code_of(-1) == Code::invalid_argument);
}
