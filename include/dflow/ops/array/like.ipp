#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/math/cast.hpp>

namespace dflow {

void ZerosLike::infer(InferContext& context) { context.set_output(0, context.input(0)); }
void OnesLike::infer(InferContext& context) { context.set_output(0, context.input(0)); }
void Identity::infer(InferContext& context) { context.set_output(0, context.input(0)); }
void Identity::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }
void StopGradient::infer(InferContext& context) { context.set_output(0, context.input(0)); }

AnyOutput detail::cast_or_name(const AnyOutput& x, DType to, const At& at) {
  if (x.dtype() != to) return cast_to(x, to, at);
  return at.name.empty() ? x : AnyOutput(build<Identity>({x}, {}, at));
}

}  // namespace dflow
