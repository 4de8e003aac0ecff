#pragma once

#include <dflow/ops/state/update.hpp>

namespace dflow {

namespace detail {

/// Checks the inputs of an update op. The first `num_variables` are handles to variables of one shape and of the op's
/// element type. `grad` is the gradient, `indices` its rows (or -1), and all others are scalars.
void infer_apply(InferContext& context, int num_variables, int grad, int indices = -1) {
  PartialShape variable = context.input(0);
  for (int i = 0; i < num_variables; ++i) {
    const DType held = context.variable_dtype(i);
    if (held != DType::invalid && held != context.type_arg(0)) {
      context.fail(str_cat("variable ", i, " holds ", dtype_name(held), ", not ", dtype_name(context.type_arg(0))));
    }
    variable = context.merge(variable, context.input(i));
  }
  for (int i = num_variables; i < context.num_inputs(); ++i) {
    if (i != grad && i != indices) static_cast<void>(context.with_rank(i, 0));
  }
  if (indices < 0) {
    static_cast<void>(context.merge(variable, context.input(grad)));
    return;
  }
  const PartialShape rows = context.with_rank(indices, 1);
  if (!variable.has_rank()) return;
  if (variable.rank() == 0) context.fail("the variable is a scalar and has no rows");
  static_cast<void>(context.merge(rows.concatenated(variable.subshape(1, variable.rank())), context.input(grad)));
}

}  // namespace detail

void ApplyGradientDescent::infer(InferContext& context) { detail::infer_apply(context, 1, 2); }
void ApplyMomentum::infer(InferContext& context) { detail::infer_apply(context, 2, 3); }
void ApplyAdam::infer(InferContext& context) { detail::infer_apply(context, 3, 9); }
void SparseApplyGradientDescent::infer(InferContext& context) { detail::infer_apply(context, 1, 2, 3); }
void SparseApplyMomentum::infer(InferContext& context) { detail::infer_apply(context, 2, 3, 4); }
void SparseApplyAdam::infer(InferContext& context) { detail::infer_apply(context, 3, 9, 10); }

}  // namespace dflow
