#pragma once

#include <dflow/ops/expr.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

// Of complex x the gradient is dy times the conjugate of the derivative, as in TensorFlow.

DFLOW_INLINE void Abs::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Sign>({context.input(0)})));
}
DFLOW_INLINE void Neg::gradient(GradientContext& context) { context.set_dx(0, -context.dy()); }
DFLOW_INLINE void Inv::gradient(GradientContext& context) {
  context.set_dx(0, build<InvGrad>({conj(context.output(0)), context.dy()}));
}
DFLOW_INLINE void Square::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * 2.0 * conj(context.input(0)));
}
DFLOW_INLINE void Sqrt::gradient(GradientContext& context) {
  context.set_dx(0, build<SqrtGrad>({conj(context.output(0)), context.dy()}));
}
DFLOW_INLINE void Rsqrt::gradient(GradientContext& context) {
  context.set_dx(0, build<RsqrtGrad>({conj(context.output(0)), context.dy()}));
}
DFLOW_INLINE void Exp::gradient(GradientContext& context) { context.set_dx(0, context.dy() * conj(context.output(0))); }
DFLOW_INLINE void Log::gradient(GradientContext& context) { context.set_dx(0, context.dy() / conj(context.input(0))); }
DFLOW_INLINE void Log1p::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() / (context.input(0) + 1.0));
}
DFLOW_INLINE void Tanh::gradient(GradientContext& context) {
  context.set_dx(0, build<TanhGrad>({conj(context.output(0)), context.dy()}));
}
DFLOW_INLINE void Sigmoid::gradient(GradientContext& context) {
  context.set_dx(0, build<SigmoidGrad>({conj(context.output(0)), context.dy()}));
}
DFLOW_INLINE void Sin::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Cos>({conj(context.input(0))})));
}
DFLOW_INLINE void Cos::gradient(GradientContext& context) {
  context.set_dx(0, -(context.dy() * AnyOutput(build<Sin>({conj(context.input(0))}))));
}
DFLOW_INLINE void Sign::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
DFLOW_INLINE void Floor::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
DFLOW_INLINE void Ceil::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
DFLOW_INLINE void Round::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
DFLOW_INLINE void Conj::gradient(GradientContext& context) { context.set_dx(0, conj(context.dy())); }

}  // namespace dflow
