#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/conv2d.hpp>

namespace dflow {

/// Two-dimensional convolution in which each channel of the images has filters of its own.
struct DepthwiseConv2dNative : StandardOp<"DepthwiseConv2dNative", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of DepthwiseConv2dNative with respect to its input: input_sizes [4], filter, out_backprop.
struct DepthwiseConv2dNativeBackpropInput : StandardOp<"DepthwiseConv2dNativeBackpropInput", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<std::int32_t, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of DepthwiseConv2dNative with respect to its filter: input, filter_sizes [4], out_backprop.
struct DepthwiseConv2dNativeBackpropFilter : StandardOp<"DepthwiseConv2dNativeBackpropFilter", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<T, std::int32_t, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// y[b, i, j, q * multiplier + r] = sum over di, dj of
/// x[b, stride_rows * i + dilation_rows * di, stride_columns * j + dilation_columns * dj, q] filter[di, dj, q, r].
///
/// x: [batch, in_rows, in_columns, channels], filter: [rows, columns, channels, multiplier]. Gives [batch, out_rows,
/// out_columns, channels * multiplier]. Padding, strides and dilations are those of `conv2d`.
///
/// ```cpp
/// auto y = df::depthwise_conv2d(images, filter, {.strides = {1, 2, 2, 1}, .padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument as for `conv2d`, and unless the filter has as many channels as x. There is no kernel for
/// CUDA.
template <class A, class B>
  requires Accepts<DepthwiseConv2dNative, A, B>
Output<ElementFor<DepthwiseConv2dNative, A, B>> depthwise_conv2d(const A& x, const B& filter, Conv2DAttrs attrs = {},
                                                                 const At& at = {}) {
  return apply<DepthwiseConv2dNative>(x, filter, std::move(attrs), at);
}

}  // namespace dflow
