#pragma once

#include <dflow/ops/expr.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>

namespace dflow {

DFLOW_INLINE void Lgamma::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Digamma>({context.input(0)})));
}
DFLOW_INLINE void Digamma::gradient(GradientContext& context) {
  context.set_dx(0, build<DigammaGrad>({context.input(0), context.dy()}));
}
DFLOW_INLINE void DigammaGrad::gradient(GradientContext& context) {
  context.fail("the second derivative of digamma is not implemented");
}

namespace detail {

/// exp(-x^2) 2 / sqrt(pi).
DFLOW_INLINE Expr erf_slope(const Expr& x) {
  const Expr square = AnyOutput(build<Square>({x}));
  return Expr(AnyOutput(build<Exp>({-square}))) * 1.1283791670955126;
}

/// x^(a-1) exp(-x) / gamma(a).
DFLOW_INLINE Expr igamma_slope(const Expr& a, const Expr& x) {
  const Expr log_x = AnyOutput(build<Log>({x})), lgamma_a = AnyOutput(build<Lgamma>({a}));
  return AnyOutput(build<Exp>({(a - 1.0) * log_x - x - lgamma_a}));
}

}  // namespace detail

DFLOW_INLINE void Erf::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * detail::erf_slope(context.input(0)));
}
DFLOW_INLINE void Erfc::gradient(GradientContext& context) {
  context.set_dx(0, -(context.dy() * detail::erf_slope(context.input(0))));
}
DFLOW_INLINE void Igamma::gradient(GradientContext& context) {
  const Expr a = context.input(0), x = context.input(1);
  context.set_dx(1, sum_to_shape_of(context.dy() * detail::igamma_slope(a, x), x));
}
DFLOW_INLINE void Igammac::gradient(GradientContext& context) {
  const Expr a = context.input(0), x = context.input(1);
  context.set_dx(1, sum_to_shape_of(-(context.dy() * detail::igamma_slope(a, x)), x));
}

}  // namespace dflow
