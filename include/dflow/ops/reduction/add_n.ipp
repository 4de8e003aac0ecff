#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/reduction/add_n.hpp>

namespace dflow {

void AddN::infer(InferContext& context) {
  if (context.num_inputs() == 0) context.fail("needs at least one value");
  PartialShape shape = context.input(0);
  for (int i = 1; i < context.num_inputs(); ++i) shape = context.merge(shape, context.input(i));
  context.set_output(0, shape);
}

void AddN::gradient(GradientContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) context.set_dx(i, context.dy());
}

}  // namespace dflow
