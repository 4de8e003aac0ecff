#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/nn/pool2d.hpp>

namespace dflow {

namespace detail {

PartialShape infer_pool2d(const InferContext& context, const Pool2DAttrs& attrs, const PartialShape& input) {
  require_spatial(context, "ksize", attrs.ksize);
  require_spatial(context, "strides", attrs.strides);
  require_nhwc(context, attrs.data_format);
  return {input[0], infer_window(context, "rows", input[1], attrs.ksize[1], attrs.strides[1], attrs.padding),
          infer_window(context, "columns", input[2], attrs.ksize[2], attrs.strides[2], attrs.padding), input[3]};
}

/// Fails unless input `i` may have the shape `output` of the pooling.
void require_pooled(const InferContext& context, int i, const PartialShape& output) {
  const PartialShape got = context.with_rank(i, 4);
  if (got.is_compatible_with(output)) return;
  context.fail(
      str_cat("input ", i, " must have the shape ", output.to_string(), " of the pooled input, got ", got.to_string()));
}

}  // namespace detail

void AvgPool::infer(InferContext& context) {
  context.set_output(0, detail::infer_pool2d(context, context.attrs<AvgPool>(), context.with_rank(0, 4)));
}

void AvgPoolGrad::infer(InferContext& context) {
  const PartialShape grad = context.with_rank(1, 4);
  PartialShape input = detail::infer_sizes(context, 0);
  detail::require_pooled(context, 1, detail::infer_pool2d(context, context.attrs<AvgPoolGrad>(), input));
  if (input[0] == dynamic) input = input.with_dim(0, grad[0]);
  if (input[3] == dynamic) input = input.with_dim(3, grad[3]);
  context.set_output(0, std::move(input));
}

void MaxPool::infer(InferContext& context) {
  context.set_output(0, detail::infer_pool2d(context, context.attrs<MaxPool>(), context.with_rank(0, 4)));
}

void MaxPoolGrad::infer(InferContext& context) {
  const PartialShape input = context.with_rank(0, 4);
  const PartialShape output = detail::infer_pool2d(context, context.attrs<MaxPoolGrad>(), input);
  detail::require_pooled(context, 1, output);
  detail::require_pooled(context, 2, output);
  context.set_output(0, input);
}

void MaxPoolGradGrad::infer(InferContext& context) {
  const PartialShape input = context.merge(context.with_rank(0, 4), context.with_rank(2, 4));
  PartialShape output = detail::infer_pool2d(context, context.attrs<MaxPoolGradGrad>(), input);
  detail::require_pooled(context, 1, output);
  context.set_output(0, context.merge(output, context.input(1)));
}

void AvgPool::gradient(GradientContext& context) {
  context.set_dx(0, build<AvgPoolGrad>({shape_of(context.input(0)), context.dy()}, context.attrs<AvgPool>()));
}

void AvgPoolGrad::gradient(GradientContext& context) {
  context.set_dx(1, build<AvgPool>({context.dy()}, context.attrs<AvgPoolGrad>()));
}

void MaxPool::gradient(GradientContext& context) {
  context.set_dx(0, build<MaxPoolGrad>({context.input(0), context.output(0), context.dy()}, context.attrs<MaxPool>()));
}

// The positions of the maxima change with the input's values only in jumps: the gradient flows through grad alone.

void MaxPoolGrad::gradient(GradientContext& context) {
  context.set_dx(
      2, build<MaxPoolGradGrad>({context.input(0), context.input(1), context.dy()}, context.attrs<MaxPoolGrad>()));
}

void MaxPoolGradGrad::gradient(GradientContext& context) {
  context.set_dx(
      2, build<MaxPoolGrad>({context.input(0), context.input(1), context.dy()}, context.attrs<MaxPoolGradGrad>()));
}

}  // namespace dflow
