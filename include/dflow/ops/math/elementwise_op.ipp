#pragma once

#include <dflow/ops/math/elementwise_op.hpp>

namespace dflow {

void detail::infer_same_shape(InferContext& context) {
  PartialShape shape = context.input(0);
  for (int i = 1; i < context.num_inputs(); ++i) shape = context.merge(shape, context.input(i));
  context.set_output(0, shape);
}

}  // namespace dflow
