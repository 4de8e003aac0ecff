#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/math/broadcast.hpp>

namespace dflow {

namespace detail {

/// Output 0 gets the shape that input 1 holds; `narrow` must broadcast to `wide`, and that shape is one of the two.
void infer_given_shape(InferContext& context, bool given_is_wide) {
  context.with_rank(1, 1);
  const PartialShape given = context.value_as_shape(1).value_or(PartialShape::unknown());
  const PartialShape& wide = given_is_wide ? given : context.input(0);
  const PartialShape& narrow = given_is_wide ? context.input(0) : given;
  if (wide.has_rank() && narrow.has_rank()) {
    const std::optional<PartialShape> both = broadcast_shapes(wide, narrow);
    if (!both || !both->is_compatible_with(wide)) {
      context.fail(str_cat("shape ", narrow.to_string(), " does not broadcast to ", wide.to_string()));
    }
  }
  context.set_output(0, given);
}

}  // namespace detail

void BroadcastTo::infer(InferContext& context) { detail::infer_given_shape(context, true); }

void BroadcastTo::gradient(GradientContext& context) {
  context.set_dx(0, build<SumToShape>({context.dy(), shape_of(context.input(0))}));
}

void SumToShape::infer(InferContext& context) { detail::infer_given_shape(context, false); }

void SumToShape::gradient(GradientContext& context) {
  context.set_dx(0, build<BroadcastTo>({context.dy(), shape_of(context.input(0))}));
}

}  // namespace dflow
