#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>

#include <limits>

namespace dflow {

void Lgamma::gradient(GradientContext& context) {
  context.set_dx(0, context.dy() * AnyOutput(build<Digamma>({context.input(0)})));
}
void Digamma::gradient(GradientContext& context) {
  context.set_dx(0, build<DigammaGrad>({context.input(0), context.dy()}));
}
void DigammaGrad::gradient(GradientContext& context) {
  context.fail("the second derivative of digamma is not implemented");
}

namespace detail {

/// exp(-x^2) 2 / sqrt(pi).
Expr erf_slope(const Expr& x) {
  const Expr square = AnyOutput(build<Square>({x}));
  return Expr(AnyOutput(build<Exp>({-square}))) * 1.1283791670955126;
}

/// x^(a-1) exp(-x) / gamma(a), which vanishes where a or x is infinite.
Expr igamma_slope(const Expr& a, const Expr& x) {
  const auto is_infinite = [](const Expr& of) {
    return build<Equal>({of, scalar_like(of, std::numeric_limits<double>::infinity())});
  };
  const auto finite = [&](const Expr& of) {
    return Expr(AnyOutput(build<Select>({is_infinite(of), ones_like(of), of})));
  };
  const auto kept = [&](const Expr& of) {
    return Expr(AnyOutput(build<Select>({is_infinite(of), zeros_like(of), ones_like(of)})));
  };
  const Expr finite_a = finite(a), finite_x = finite(x);
  const Expr log_x = AnyOutput(build<Log>({finite_x})), lgamma_a = AnyOutput(build<Lgamma>({finite_a}));
  const Expr slope = AnyOutput(build<Exp>({(finite_a - 1.0) * log_x - finite_x - lgamma_a}));
  return slope * kept(a) * kept(x);
}

}  // namespace detail

void Erf::gradient(GradientContext& context) { context.set_dx(0, context.dy() * detail::erf_slope(context.input(0))); }
void Erfc::gradient(GradientContext& context) {
  context.set_dx(0, -(context.dy() * detail::erf_slope(context.input(0))));
}
void Igamma::gradient(GradientContext& context) {
  const Expr a = context.input(0), x = context.input(1);
  context.set_dx(1, sum_to_shape_of(context.dy() * detail::igamma_slope(a, x), x));
}
void Igammac::gradient(GradientContext& context) {
  const Expr a = context.input(0), x = context.input(1);
  context.set_dx(1, sum_to_shape_of(-(context.dy() * detail::igamma_slope(a, x)), x));
}

}  // namespace dflow
