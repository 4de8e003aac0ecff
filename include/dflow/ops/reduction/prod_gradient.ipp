#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>
#include <dflow/ops/reduction/reduce.hpp>

namespace dflow {

void ExclusiveProd::infer(InferContext& context) {
  detail::check_reduction_axes(context);
  context.set_output(0, context.input(0));
}

void ExclusiveProd::gradient(GradientContext& context) {
  const Expr x = context.input(0);
  context.set_dx(0, build<ExclusiveProdGrad>({conj(x), context.input(1), context.dy()}));
}

void ExclusiveProdGrad::infer(InferContext& context) {
  detail::check_reduction_axes(context);
  context.set_output(0, context.merge(context.input(0), context.input(2)));
}

/// Linear in dy, by a symmetric matrix. Its derivative by x is the third one of Prod.
void ExclusiveProdGrad::gradient(GradientContext& context) {
  context.fail("the third derivative of Prod is not implemented");
}

}  // namespace dflow
