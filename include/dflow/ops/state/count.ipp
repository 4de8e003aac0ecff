#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/state/count.hpp>

namespace dflow {

void CountUpTo::infer(InferContext& context) {
  const DType held = context.variable_dtype(0);
  if (held != DType::invalid && held != context.type_arg(0)) {
    context.fail(str_cat("the variable holds ", dtype_name(held), ", not ", dtype_name(context.type_arg(0))));
  }
  static_cast<void>(context.with_rank(0, 0));
  context.set_output(0, Shape{});
}

AnyOutput detail::any_count_up_to(const AnyVariable& variable, const CountUpTo::Attrs& attrs, const At& at) {
  return build_on<CountUpTo>({variable.handle()}, attrs, at, one_type(variable.dtype()));
}

}  // namespace dflow
