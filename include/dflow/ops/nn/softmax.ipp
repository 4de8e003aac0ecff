#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/softmax.hpp>
#include <dflow/ops/reduction/reduce.hpp>

namespace dflow {

namespace detail {

/// Sums over the last dimension, which stays with extent 1.
Expr row_sum(const Expr& x) {
  const Expr axis = int32_constant(*x.graph(), -1, {});
  return AnyOutput(build<Sum>({x, axis}, {.keep_dims = true}));
}

/// Both inputs have one shape, of rank 1 or more, which is the output's.
void infer_row_gradient(InferContext& context) {
  context.set_output(0, context.merge(context.with_rank_at_least(0, 1), context.with_rank_at_least(1, 1)));
}

}  // namespace detail

void Softmax::infer(InferContext& context) { context.set_output(0, context.with_rank_at_least(0, 1)); }
void SoftmaxGrad::infer(InferContext& context) { detail::infer_row_gradient(context); }
void LogSoftmax::infer(InferContext& context) { context.set_output(0, context.with_rank_at_least(0, 1)); }
void LogSoftmaxGrad::infer(InferContext& context) { detail::infer_row_gradient(context); }

void Softmax::gradient(GradientContext& context) {
  context.set_dx(0, build<SoftmaxGrad>({context.output(0), context.dy()}));
}

/// g = (dy - sum(dy y)) y, linear and symmetric in dy.
void SoftmaxGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), dg = context.dy();
  context.set_dx(0, dg * (dy - detail::row_sum(dy * y)) - dy * detail::row_sum(dg * y));
  context.set_dx(1, build<SoftmaxGrad>({y, dg}));
}

void LogSoftmax::gradient(GradientContext& context) {
  context.set_dx(0, build<LogSoftmaxGrad>({context.output(0), context.dy()}));
}

/// g = dy - exp(y) sum(dy).
void LogSoftmaxGrad::gradient(GradientContext& context) {
  const Expr y = context.input(0), dy = context.input(1), dg = context.dy();
  const Expr weighted = dg * Expr(AnyOutput(build<Exp>({y})));
  context.set_dx(0, -(weighted * detail::row_sum(dy)));
  context.set_dx(1, dg - detail::row_sum(weighted));
}

}  // namespace dflow
