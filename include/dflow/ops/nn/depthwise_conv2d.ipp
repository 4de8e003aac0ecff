#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/nn/depthwise_conv2d.hpp>

namespace dflow {

namespace detail {

/// The output's shape for an input and a filter of rank 4. It is that of a convolution with a filter [rows, columns,
/// channels, channels * multiplier].
PartialShape infer_depthwise_conv2d(const InferContext& context, const Conv2DAttrs& attrs, const PartialShape& input,
                                    const PartialShape& filter) {
  const std::int64_t channels = filter[2] != dynamic ? filter[2] : input[3], multiplier = filter[3];
  if (input[3] != dynamic && filter[2] != dynamic && input[3] != filter[2]) {
    context.fail(str_cat("the input has ", input[3], " channels, the filter is for ", filter[2]));
  }
  std::int64_t outputs = dynamic;
  if (channels != dynamic && multiplier != dynamic) {
    constexpr std::int64_t limit = std::int64_t{1} << 62;
    if (multiplier != 0 && channels > limit / multiplier) {
      context.fail(str_cat(channels, " channels times ", multiplier, " filters are 2^62 or more"));
    }
    outputs = channels * multiplier;
  }
  return infer_conv2d(context, attrs, input, filter.with_dim(2, channels).with_dim(3, outputs));
}

}  // namespace detail

void DepthwiseConv2dNative::infer(InferContext& context) {
  context.set_output(0, detail::infer_depthwise_conv2d(context, context.attrs<DepthwiseConv2dNative>(),
                                                       context.with_rank(0, 4), context.with_rank(1, 4)));
}

void DepthwiseConv2dNativeBackpropInput::infer(InferContext& context) {
  const PartialShape filter = context.with_rank(1, 4), out_backprop = context.with_rank(2, 4);
  PartialShape input = detail::infer_sizes(context, 0);
  const Attrs& attrs = context.attrs<DepthwiseConv2dNativeBackpropInput>();
  detail::require_out_backprop(context, 2, detail::infer_depthwise_conv2d(context, attrs, input, filter));
  if (input[0] == dynamic) input = input.with_dim(0, out_backprop[0]);
  if (input[3] == dynamic) input = input.with_dim(3, filter[2]);
  context.set_output(0, std::move(input));
}

void DepthwiseConv2dNativeBackpropFilter::infer(InferContext& context) {
  const PartialShape input = context.with_rank(0, 4);
  PartialShape filter = detail::infer_sizes(context, 1);
  const Attrs& attrs = context.attrs<DepthwiseConv2dNativeBackpropFilter>();
  detail::require_out_backprop(context, 2, detail::infer_depthwise_conv2d(context, attrs, input, filter));
  if (filter[2] == dynamic) filter = filter.with_dim(2, input[3]);
  context.set_output(0, std::move(filter));
}

// The three ops are one trilinear form of (input, filter, out_backprop), as those of Conv2D are.

void DepthwiseConv2dNative::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<DepthwiseConv2dNative>();
  const Expr x = context.input(0), filter = context.input(1), dy = context.dy();
  context.set_dx(0, build<DepthwiseConv2dNativeBackpropInput>({shape_of(x), filter, dy}, attrs));
  context.set_dx(1, build<DepthwiseConv2dNativeBackpropFilter>({x, shape_of(filter), dy}, attrs));
}

void DepthwiseConv2dNativeBackpropInput::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<DepthwiseConv2dNativeBackpropInput>();
  const Expr filter = context.input(1), out_backprop = context.input(2), dx = context.dy();
  context.set_dx(1, build<DepthwiseConv2dNativeBackpropFilter>({dx, shape_of(filter), out_backprop}, attrs));
  context.set_dx(2, build<DepthwiseConv2dNative>({dx, filter}, attrs));
}

void DepthwiseConv2dNativeBackpropFilter::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<DepthwiseConv2dNativeBackpropFilter>();
  const Expr x = context.input(0), out_backprop = context.input(2), dfilter = context.dy();
  context.set_dx(0, build<DepthwiseConv2dNativeBackpropInput>({shape_of(x), dfilter, out_backprop}, attrs));
  context.set_dx(2, build<DepthwiseConv2dNative>({x, dfilter}, attrs));
}

}  // namespace dflow
