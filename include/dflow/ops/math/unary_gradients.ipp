#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

// Each op is linear in dy, so its gradient with respect to dy is the op itself, applied to the new gradient g.

/// z = dy (1 - y^2): dz/dy = -2 dy y.
void TanhGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), g = context.dy(), y_conj = conj(y);
  context.set_dx(0, g * conj(dy) * y_conj * -2.0);
  context.set_dx(1, build<TanhGrad>({y_conj, g}));
}

/// z = dy (y - y^2): dz/dy = dy (1 - 2 y).
void SigmoidGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), g = context.dy(), y_conj = conj(y);
  context.set_dx(0, g * conj(dy) * (1.0 - y_conj * 2.0));
  context.set_dx(1, build<SigmoidGrad>({y_conj, g}));
}

/// z = -dy y^2: dz/dy = -2 dy y.
void InvGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), g = context.dy(), y_conj = conj(y);
  context.set_dx(0, g * conj(dy) * y_conj * -2.0);
  context.set_dx(1, build<InvGrad>({y_conj, g}));
}

/// z = dy / (2 y): dz/dy = -z / y.
void SqrtGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), g = context.dy(), y_conj = conj(y);
  context.set_dx(0, -(g * conj(context.output(0)) / y_conj));
  context.set_dx(1, build<SqrtGrad>({y_conj, g}));
}

/// z = -dy y^3 / 2: dz/dy = -3/2 dy y^2.
void RsqrtGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), g = context.dy(), y_conj = conj(y);
  context.set_dx(0, g * conj(dy) * y_conj * y_conj * -1.5);
  context.set_dx(1, build<RsqrtGrad>({y_conj, g}));
}

}  // namespace dflow
