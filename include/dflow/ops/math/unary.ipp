#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

// For complex x the gradient is dy times the conjugate of the derivative, as in TensorFlow.

void Abs::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Sign>({context.input(0)})));
}
void Neg::gradient(GradientContext& context) { context.set_dx(0, -context.dy()); }
void Inv::gradient(GradientContext& context) {
  context.set_dx(0, build<InvGrad>({conj(context.output(0)), context.dy()}));
}
void Square::gradient(GradientContext& context) { context.set_dx(0, context.dy() * 2.0 * conj(context.input(0))); }
void Sqrt::gradient(GradientContext& context) {
  context.set_dx(0, build<SqrtGrad>({conj(context.output(0)), context.dy()}));
}
void Rsqrt::gradient(GradientContext& context) {
  context.set_dx(0, build<RsqrtGrad>({conj(context.output(0)), context.dy()}));
}
void Exp::gradient(GradientContext& context) { context.set_dx(0, context.dy() * conj(context.output(0))); }
void Log::gradient(GradientContext& context) { context.set_dx(0, context.dy() / conj(context.input(0))); }
void Log1p::gradient(GradientContext& context) { context.set_dx(0, context.dy() / (context.input(0) + 1.0)); }
void Tanh::gradient(GradientContext& context) {
  context.set_dx(0, build<TanhGrad>({conj(context.output(0)), context.dy()}));
}
void Sigmoid::gradient(GradientContext& context) {
  context.set_dx(0, build<SigmoidGrad>({conj(context.output(0)), context.dy()}));
}
void Sin::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Cos>({conj(context.input(0))})));
}
void Cos::gradient(GradientContext& context) {
  context.set_dx(0, -(context.dy() * AnyOutput(build<Sin>({conj(context.input(0))}))));
}
void Sign::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
void Floor::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
void Ceil::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
void Round::gradient(GradientContext& context) { context.set_dx(0, zeros_like(context.input(0))); }
void Conj::gradient(GradientContext& context) { context.set_dx(0, conj(context.dy())); }

}  // namespace dflow
