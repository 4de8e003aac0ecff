#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>
#include <dflow/ops/nn/activation.hpp>

namespace dflow {

// Gradients take the op's output where it is enough, so that its input need not be kept. Each *Grad op is linear in
// dy, so its gradient with respect to dy is the op itself, applied to the new gradient g.

void Relu::gradient(GradientContext& context) { context.set_dx(0, build<ReluGrad>({context.dy(), context.output(0)})); }
void ReluGrad::gradient(GradientContext& context) {
  context.set_dx(0, build<ReluGrad>({context.dy(), context.input(1)}));
  context.set_dx(1, zeros_like(context.input(1)));
}

void Relu6::gradient(GradientContext& context) {
  context.set_dx(0, build<Relu6Grad>({context.dy(), context.output(0)}));
}
void Relu6Grad::gradient(GradientContext& context) {
  context.set_dx(0, build<Relu6Grad>({context.dy(), context.input(1)}));
  context.set_dx(1, zeros_like(context.input(1)));
}

void Elu::gradient(GradientContext& context) { context.set_dx(0, build<EluGrad>({context.dy(), context.output(0)})); }
/// z = dy (y + 1) below 0, else dy: dz/dy = dy below 0, else 0.
void EluGrad::gradient(GradientContext& context) {
  const Expr dy = context.input(0), y = context.input(1), g = context.dy();
  const Expr is_below = AnyOutput(build<Less>({y, scalar_like(y, 0.0)}));
  context.set_dx(0, build<EluGrad>({g, y}));
  context.set_dx(1, build<Select>({is_below, g * dy, zeros_like(y)}));
}

void Softplus::gradient(GradientContext& context) {
  context.set_dx(0, build<SoftplusGrad>({context.dy(), context.input(0)}));
}
/// z = dy sigmoid(x).
void SoftplusGrad::gradient(GradientContext& context) {
  const Expr dy = context.input(0), x = context.input(1), g = context.dy();
  context.set_dx(0, build<SoftplusGrad>({g, x}));
  context.set_dx(1, build<SigmoidGrad>({AnyOutput(build<Sigmoid>({x})), g * dy}));
}

void Softsign::gradient(GradientContext& context) {
  context.set_dx(0, build<SoftsignGrad>({context.dy(), context.input(0)}));
}
/// z = dy / (1 + |x|)^2: dz/dx = -2 sign(x) z / (1 + |x|).
void SoftsignGrad::gradient(GradientContext& context) {
  const Expr x = context.input(1), g = context.dy();
  const Expr size = AnyOutput(build<Abs>({x})), sign = AnyOutput(build<Sign>({x}));
  context.set_dx(0, build<SoftsignGrad>({g, x}));
  context.set_dx(1, g * context.output(0) * sign * -2.0 / (size + 1.0));
}

}  // namespace dflow
