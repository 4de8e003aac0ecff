#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/nn/softmax.hpp>

namespace dflow {

namespace detail {

/// The gradient by the logits of an op with outputs (loss, backprop). It adds each row of backprop times the loss's
/// gradient, and the gradient of backprop through the softmax it holds.
Expr logits_gradient(const GradientContext& context) {
  Expr gradient;
  if (context.has_dy(0)) gradient = Expr(any_expand_dims(context.dy(0), -1, {})) * context.output(1);
  if (context.has_dy(1)) {
    const Expr softmax = AnyOutput(build<Softmax>({context.input(0)}));
    const Expr through = AnyOutput(build<SoftmaxGrad>({softmax, context.dy(1)}));
    gradient = gradient.is_valid() ? gradient + through : through;
  }
  return gradient;
}

}  // namespace detail

void SoftmaxCrossEntropyWithLogits::infer(InferContext& context) {
  PartialShape shape = context.merge(context.with_rank_at_least(0, 1), context.with_rank_at_least(1, 1));
  context.set_output(0, shape.has_rank() ? shape.subshape(0, shape.rank() - 1) : shape);
  context.set_output(1, std::move(shape));
}

void SoftmaxCrossEntropyWithLogits::gradient(GradientContext& context) {
  context.set_dx(0, detail::logits_gradient(context));
  Expr dlabels;
  if (context.has_dy(0)) {
    const Expr log_softmax = AnyOutput(build<LogSoftmax>({context.input(0)}));
    dlabels = -(Expr(detail::any_expand_dims(context.dy(0), -1, {})) * log_softmax);
  }
  if (context.has_dy(1)) dlabels = dlabels.is_valid() ? dlabels - context.dy(1) : -context.dy(1);
  context.set_dx(1, dlabels);
}

void SparseSoftmaxCrossEntropyWithLogits::infer(InferContext& context) {
  const PartialShape logits = context.with_rank_at_least(0, 1);
  const PartialShape& labels = context.input(1);
  const PartialShape rows = logits.has_rank() ? logits.subshape(0, logits.rank() - 1) : PartialShape::unknown();
  if (!rows.is_compatible_with(labels)) {
    context.fail(str_cat("there must be one label per row of logits, got labels of shape ", labels.to_string(),
                         " for logits of shape ", logits.to_string()));
  }
  const PartialShape loss = rows.merged_with(labels);
  if (loss.has_rank() && loss.rank() >= max_rank) context.fail(str_cat("labels have rank ", loss.rank()));
  const std::int64_t classes = logits.has_rank() ? logits[logits.rank() - 1] : dynamic;
  context.set_output(0, loss);
  context.set_output(1, loss.has_rank() ? loss.appended(classes) : loss);
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

AnyOutput detail::any_weighted_cross_entropy(const AnyOutput& logits, const AnyOutput& targets,
                                             const AnyOutput& pos_weight, const At& at) {
  const Composite place(graph_of({&logits, 1}, "weighted_cross_entropy_with_logits", at), at.where);
  const Expr x = widened(logits), z = widened(targets), q = widened(pos_weight);
  const Expr weight = 1.0 + (q - 1.0) * z;
  // log(1 + exp(-|x|)) + max(-x, 0) is log(1 + exp(-x)).
  const Expr softplus = AnyOutput(build<Softplus>({-x}));
  return cast_or_name((1.0 - z) * x + weight * softplus, logits.dtype(), at);
}

}  // namespace dflow
