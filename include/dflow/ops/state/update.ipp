#pragma once

#include <dflow/ops/state/update.hpp>

namespace dflow {

void detail::infer_update(InferContext& context, const UpdateInputs& inputs) {
  PartialShape variable = context.input(0);
  for (int i = 0; i < inputs.num_variables; ++i) {
    const DType held = context.variable_dtype(i);
    if (held != DType::invalid && held != context.type_arg(0)) {
      context.fail(str_cat("variable ", i, " holds ", dtype_name(held), ", not ", dtype_name(context.type_arg(0))));
    }
    variable = context.merge(variable, context.input(i));
  }
  for (int i = 0; i < inputs.num_factors(); ++i) static_cast<void>(context.with_rank(inputs.factor(i), 0));
  if (!inputs.is_sparse) {
    static_cast<void>(context.merge(variable, context.input(inputs.gradient)));
    return;
  }
  const PartialShape rows = context.with_rank(inputs.gradient + 1, 1);
  if (!variable.has_rank()) return;
  if (variable.rank() == 0) context.fail("the variable is a scalar and has no rows");
  static_cast<void>(
      context.merge(rows.concatenated(variable.subshape(1, variable.rank())), context.input(inputs.gradient)));
}

}  // namespace dflow
