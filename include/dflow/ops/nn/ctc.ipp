#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/nn/ctc.hpp>

namespace dflow {

namespace detail {

/// Inputs [max_time, batch, classes] of at least one class, and sequence_length [batch], which is input `lengths`.
PartialShape infer_ctc_inputs(InferContext& context, int lengths) {
  PartialShape inputs = context.with_rank(0, 3);
  if (inputs[2] == 0) context.fail("inputs must have a class for the blank");
  return inputs.with_dim(1, context.merge_dim(inputs[1], context.with_rank(lengths, 1)[0]));
}

}  // namespace detail

void CTCLoss::infer(InferContext& context) {
  const PartialShape inputs = detail::infer_ctc_inputs(context, 3);
  static_cast<void>(context.merge(context.input(1), PartialShape{context.with_rank(2, 1)[0], 2}));
  context.set_output(0, PartialShape{inputs[1]});
  context.set_output(1, inputs);
}

void CTCLoss::gradient(GradientContext& context) {
  if (context.has_dy(1)) context.fail("the gradient of CTCLoss has no gradient");
  context.set_dx(0, Expr(detail::any_expand_dims(context.dy(0), -1, {})) * context.output(1));
}

}  // namespace dflow
