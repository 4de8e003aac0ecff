#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/op/op_def_of.hpp>

namespace dflow {

void detail::infer_elementwise(InferContext& context) {
  PartialShape shape = context.input(0);
  for (int i = 1; i < context.num_inputs(); ++i) {
    std::optional<PartialShape> wider = broadcast_shapes(shape, context.input(i));
    if (!wider) context.fail("the input shapes do not broadcast together");
    shape = std::move(*wider);
  }
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shape);
}

}  // namespace dflow
