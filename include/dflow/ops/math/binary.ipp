#pragma once

#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>

namespace dflow {

void Add::gradient(GradientContext& context) {
  context.set_dx(0, sum_to_shape_of(context.dy(), context.input(0)));
  context.set_dx(1, sum_to_shape_of(context.dy(), context.input(1)));
}

void Sub::gradient(GradientContext& context) {
  context.set_dx(0, sum_to_shape_of(context.dy(), context.input(0)));
  context.set_dx(1, sum_to_shape_of(-context.dy(), context.input(1)));
}

void Mul::gradient(GradientContext& context) {
  const Expr a = context.input(0), b = context.input(1), dy = context.dy();
  context.set_dx(0, sum_to_shape_of(dy * conj(b), a));
  context.set_dx(1, sum_to_shape_of(dy * conj(a), b));
}

/// y = a / b: da = dy / b, db = -y dy / b.
void Div::gradient(GradientContext& context) {
  const Expr a = context.input(0), b = context.input(1);
  const Expr da = context.dy() / conj(b);
  context.set_dx(0, sum_to_shape_of(da, a));
  context.set_dx(1, sum_to_shape_of(-da * conj(context.output(0)), b));
}

/// y = a^b: da = dy b a^(b-1), db = dy y log a; if a has no logarithm, log a counts as 0.
void Pow::gradient(GradientContext& context) {
  const Expr a = context.input(0), b = context.input(1), dy = context.dy();
  if (is_integer(a.dtype())) context.fail("integer powers have no gradient");
  const Expr power = AnyOutput(build<Pow>({a, b - 1.0}));
  context.set_dx(0, sum_to_shape_of(dy * conj(b * power), a));
  const Expr zero = scalar_like(a, 0.0);
  const AnyOutput has_log = is_complex(a.dtype()) ? build<NotEqual>({a, zero}) : build<Greater>({a, zero});
  const Expr log_a = AnyOutput(build<Log>({AnyOutput(build<Select>({has_log, a, ones_like(a)}))}));
  context.set_dx(1, sum_to_shape_of(dy * conj(context.output(0) * log_a), b));
}

namespace detail {

/// The gradient goes to the first input where `first_chosen`, else to the second.
void split_gradient(GradientContext& context, const AnyOutput& first_chosen) {
  const Expr dy = context.dy(), zeros = zeros_like(dy);
  const Expr to_first = AnyOutput(build<Select>({first_chosen, dy, zeros}));
  const Expr to_second = AnyOutput(build<Select>({first_chosen, zeros, dy}));
  context.set_dx(0, sum_to_shape_of(to_first, context.input(0)));
  context.set_dx(1, sum_to_shape_of(to_second, context.input(1)));
}

}  // namespace detail

void Maximum::gradient(GradientContext& context) {
  detail::split_gradient(context, build<GreaterEqual>({context.input(0), context.input(1)}));
}

void Minimum::gradient(GradientContext& context) {
  detail::split_gradient(context, build<LessEqual>({context.input(0), context.input(1)}));
}

void SquaredDifference::gradient(GradientContext& context) {
  const Expr a = context.input(0), b = context.input(1);
  const Expr da = context.dy() * 2.0 * (a - b);
  context.set_dx(0, sum_to_shape_of(da, a));
  context.set_dx(1, sum_to_shape_of(-da, b));
}

}  // namespace dflow
