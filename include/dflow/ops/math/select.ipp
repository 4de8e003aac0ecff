#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/select.hpp>

namespace dflow {

void Select::infer(InferContext& context) {
  PartialShape shape = context.merge(context.input(1), context.input(2));
  const PartialShape& condition = context.input(0);
  if (!condition.has_rank() || condition.rank() == 0) return context.set_output(0, shape);
  if (condition.rank() > 1) return context.set_output(0, context.merge(shape, condition));
  if (shape.has_rank()) {
    if (shape.rank() == 0) context.fail("a vector cannot choose between scalars");
    shape = shape.with_dim(0, context.merge_dim(shape[0], condition[0]));
  }
  context.set_output(0, shape);
}

void Select::gradient(GradientContext& context) {
  const Expr condition = context.input(0), dy = context.dy(), zeros = zeros_like(dy);
  context.set_dx(1, build<Select>({condition, dy, zeros}));
  context.set_dx(2, build<Select>({condition, zeros, dy}));
}

}  // namespace dflow
