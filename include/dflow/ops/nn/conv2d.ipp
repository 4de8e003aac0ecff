#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/nn/conv2d.hpp>

namespace dflow {

namespace detail {

PartialShape infer_conv2d(const InferContext& context, const Conv2DAttrs& attrs, const PartialShape& input,
                          const PartialShape& filter) {
  require_spatial(context, "strides", attrs.strides);
  require_spatial(context, "dilations", attrs.dilations);
  require_nhwc(context, attrs.data_format);
  if (input[3] != dynamic && filter[2] != dynamic && input[3] != filter[2]) {
    if (input[3] == 0 || filter[2] == 0 || input[3] % filter[2] != 0) {
      context.fail(str_cat("the input has ", input[3], " channels, the filter is for ", filter[2]));
    }
    const std::int64_t groups = input[3] / filter[2];
    if (filter[3] != dynamic && filter[3] % groups != 0) {
      context.fail(str_cat("the filter's ", filter[3], " output channels do not divide into the ", groups,
                           " groups of the input's ", input[3], " channels"));
    }
  }
  return {input[0],
          infer_window(context, "rows", input[1], filter[0], attrs.strides[1], attrs.padding, attrs.dilations[1]),
          infer_window(context, "columns", input[2], filter[1], attrs.strides[2], attrs.padding, attrs.dilations[2]),
          filter[3]};
}

void require_out_backprop(const InferContext& context, int i, const PartialShape& output) {
  const PartialShape got = context.with_rank(i, 4);
  if (got.is_compatible_with(output)) return;
  context.fail(
      str_cat("out_backprop must have the shape ", output.to_string(), " of the convolution, got ", got.to_string()));
}

}  // namespace detail

void Conv2D::infer(InferContext& context) {
  context.set_output(
      0, detail::infer_conv2d(context, context.attrs<Conv2D>(), context.with_rank(0, 4), context.with_rank(1, 4)));
}

void Conv2DBackpropInput::infer(InferContext& context) {
  const PartialShape filter = context.with_rank(1, 4), out_backprop = context.with_rank(2, 4);
  PartialShape input = detail::infer_sizes(context, 0);
  detail::require_out_backprop(context, 2,
                               detail::infer_conv2d(context, context.attrs<Conv2DBackpropInput>(), input, filter));
  if (input[0] == dynamic) input = input.with_dim(0, out_backprop[0]);
  context.set_output(0, std::move(input));
}

void Conv2DBackpropFilter::infer(InferContext& context) {
  const PartialShape input = context.with_rank(0, 4), out_backprop = context.with_rank(2, 4);
  PartialShape filter = detail::infer_sizes(context, 1);
  detail::require_out_backprop(context, 2,
                               detail::infer_conv2d(context, context.attrs<Conv2DBackpropFilter>(), input, filter));
  if (filter[3] == dynamic) filter = filter.with_dim(3, out_backprop[3]);
  context.set_output(0, std::move(filter));
}

// The three ops are one trilinear form of (input, filter, out_backprop), so each one's gradients are the other two.

void Conv2D::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<Conv2D>();
  const Expr x = context.input(0), filter = context.input(1), dy = context.dy();
  context.set_dx(0, build<Conv2DBackpropInput>({shape_of(x), filter, dy}, attrs));
  context.set_dx(1, build<Conv2DBackpropFilter>({x, shape_of(filter), dy}, attrs));
}

void Conv2DBackpropInput::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<Conv2DBackpropInput>();
  const Expr filter = context.input(1), out_backprop = context.input(2), dx = context.dy();
  context.set_dx(1, build<Conv2DBackpropFilter>({dx, shape_of(filter), out_backprop}, attrs));
  context.set_dx(2, build<Conv2D>({dx, filter}, attrs));
}

void Conv2DBackpropFilter::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<Conv2DBackpropFilter>();
  const Expr x = context.input(0), out_backprop = context.input(2), dfilter = context.dy();
  context.set_dx(0, build<Conv2DBackpropInput>({shape_of(x), dfilter, out_backprop}, attrs));
  context.set_dx(2, build<Conv2D>({x, dfilter}, attrs));
}

}  // namespace dflow
