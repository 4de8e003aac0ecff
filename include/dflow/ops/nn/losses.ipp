#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/nn/softmax.hpp>

namespace dflow {

namespace detail {

/// The gradient by the logits of an op with outputs (loss, backprop). It adds each row of backprop times the loss's
/// gradient, and the gradient of backprop through the softmax it holds.
Expr logits_gradient(const GradientContext& context) {
  Expr gradient;
  if (context.has_dy(0)) gradient = Expr(any_expand_dims(context.dy(0), 1, {})) * context.output(1);
  if (context.has_dy(1)) {
    const Expr softmax = AnyOutput(build<Softmax>({context.input(0)}));
    const Expr through = AnyOutput(build<SoftmaxGrad>({softmax, context.dy(1)}));
    gradient = gradient.is_valid() ? gradient + through : through;
  }
  return gradient;
}

}  // namespace detail

void SoftmaxCrossEntropyWithLogits::infer(InferContext& context) {
  PartialShape shape = context.merge(context.with_rank(0, 2), context.with_rank(1, 2));
  context.set_output(0, {shape[0]});
  context.set_output(1, std::move(shape));
}

void SoftmaxCrossEntropyWithLogits::gradient(GradientContext& context) {
  context.set_dx(0, detail::logits_gradient(context));
  Expr dlabels;
  if (context.has_dy(0)) {
    const Expr log_softmax = AnyOutput(build<LogSoftmax>({context.input(0)}));
    dlabels = -(Expr(detail::any_expand_dims(context.dy(0), 1, {})) * log_softmax);
  }
  if (context.has_dy(1)) dlabels = dlabels.is_valid() ? dlabels - context.dy(1) : -context.dy(1);
  context.set_dx(1, dlabels);
}

void SparseSoftmaxCrossEntropyWithLogits::infer(InferContext& context) {
  const PartialShape logits = context.with_rank(0, 2), labels = context.with_rank(1, 1);
  if (logits[0] != dynamic && labels[0] != dynamic && logits[0] != labels[0]) {
    context.fail(str_cat("there must be one label per row of logits, got ", labels[0], " for ", logits[0], " rows"));
  }
  const std::int64_t rows = context.merge_dim(logits[0], labels[0]);
  context.set_output(0, {rows});
  context.set_output(1, {rows, logits[1]});
}

void SparseSoftmaxCrossEntropyWithLogits::gradient(GradientContext& context) {
  context.set_dx(0, detail::logits_gradient(context));
}

void SigmoidCrossEntropyWithLogits::gradient(GradientContext& context) {
  const Expr x = context.input(0), z = context.input(1), dy = context.dy();
  const Expr probability = AnyOutput(build<Sigmoid>({x}));
  context.set_dx(0, sum_to_shape_of(dy * (probability - z), x));
  context.set_dx(1, sum_to_shape_of(-(dy * x), z));
}

void L2Loss::infer(InferContext& context) { context.set_output(0, PartialShape{}); }

void L2Loss::gradient(GradientContext& context) { context.set_dx(0, context.input(0) * context.dy()); }

}  // namespace dflow
