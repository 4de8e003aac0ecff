#pragma once

#include <dflow/ops/array/like.hpp>
#include <dflow/ops/expr.hpp>

namespace dflow {

DFLOW_INLINE void ZerosLike::infer(InferContext& context) { context.set_output(0, context.input(0)); }
DFLOW_INLINE void OnesLike::infer(InferContext& context) { context.set_output(0, context.input(0)); }
DFLOW_INLINE void Identity::infer(InferContext& context) { context.set_output(0, context.input(0)); }
DFLOW_INLINE void Identity::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }
DFLOW_INLINE void StopGradient::infer(InferContext& context) { context.set_output(0, context.input(0)); }

}  // namespace dflow
