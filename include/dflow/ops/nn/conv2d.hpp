#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/window.hpp>

#include <vector>

namespace dflow {

/// Attributes of a convolution and of its gradients. `strides` and `dilations` apply to the input's dimensions: [1,
/// rows, columns, 1]. Elements of the filter lie `dilations` apart on the input.
struct Conv2DAttrs {
  std::vector<std::int64_t> strides{1, 1, 1, 1};
  Padding padding = Padding::valid;
  DataFormat data_format = DataFormat::nhwc;
  std::vector<std::int64_t> dilations{1, 1, 1, 1};
};

/// Two-dimensional convolution (cross-correlation) of images with a filter.
struct Conv2D : StandardOp<"Conv2D", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of Conv2D with respect to its input: input_sizes [4], filter, out_backprop.
struct Conv2DBackpropInput : StandardOp<"Conv2DBackpropInput", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<std::int32_t, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of Conv2D with respect to its filter: input, filter_sizes [4], out_backprop.
struct Conv2DBackpropFilter : StandardOp<"Conv2DBackpropFilter", FloatTypes> {
  using Attrs = Conv2DAttrs;
  using Inputs = In<T, std::int32_t, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// The output's shape for an input and a filter of rank 4; checks strides, dilations, format and channels.
PartialShape infer_conv2d(const InferContext& context, const Conv2DAttrs& attrs, const PartialShape& input,
                          const PartialShape& filter);
/// Fails unless input `i`, the gradient of a convolution's output, may have the shape of that output.
void require_out_backprop(const InferContext& context, int i, const PartialShape& output);
}  // namespace detail

/// y[b, i, j, k] = sum over di, dj, q of
/// x[b, stride_rows * i + dilation_rows * di, stride_columns * j + dilation_columns * dj, q] filter[di, dj, q, k].
///
/// x: [batch, in_rows, in_columns, in_channels], filter: [rows, columns, in_channels, out_channels]. Gives [batch,
/// out_rows, out_columns, out_channels] with the extents of `Padding`. The window is (rows - 1) dilation_rows + 1 by
/// (columns - 1) dilation_columns + 1.
///
/// If the filter has fewer input channels than x, by a factor of `groups`, the channels of x and of the output lie in
/// so many runs of equal length. A run of the output sees the same run of x alone.
///
/// ```cpp
/// auto y = df::conv2d(images, filter, {.strides = {1, 2, 2, 1}, .padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument unless both have rank 4, the format is NHWC, the filter's input channels divide those of x,
/// and the number of groups divides the output channels. A CUDA device refuses several groups as Unimplemented. Strides
/// and dilations must be [1, rows, columns, 1] with positive rows and columns. Without padding, the dilated filter must
/// fit into x. Padding counts as zeros. If an infinite value of the filter meets padding, some kernels multiply and
/// give NaN (the library's own and TensorFlow's), others leave it out (oneDNN's).
template <class A, class B>
  requires Accepts<Conv2D, A, B>
Output<ElementFor<Conv2D, A, B>> conv2d(const A& x, const B& filter, Conv2D::Attrs attrs = {}, const At& at = {}) {
  return apply<Conv2D>(x, filter, std::move(attrs), at);
}

/// The transpose of `conv2d` in its input: out_backprop [batch, out_rows, out_columns, out_channels] gives
/// `input_sizes` [batch, in_rows, in_columns, in_channels]. Also called deconvolution.
///
/// Errors: InvalidArgument as for `conv2d`, and if out_backprop has another shape than `conv2d` gives. If `input_sizes`
/// is not known before, the error comes when the step runs.
template <class A, class B, class C>
  requires Accepts<Conv2DBackpropInput, A, B, C>
Output<ElementFor<Conv2DBackpropInput, A, B, C>> conv2d_backprop_input(const A& input_sizes, const B& filter,
                                                                       const C& out_backprop, Conv2D::Attrs attrs = {},
                                                                       const At& at = {}) {
  return apply<Conv2DBackpropInput>(input_sizes, filter, out_backprop, std::move(attrs), at);
}

/// The transpose of `conv2d` in its filter: gives `filter_sizes` [rows, columns, in_channels, out_channels].
///
/// Errors: as for `conv2d_backprop_input`.
template <class A, class B, class C>
  requires Accepts<Conv2DBackpropFilter, A, B, C>
Output<ElementFor<Conv2DBackpropFilter, A, B, C>> conv2d_backprop_filter(const A& x, const B& filter_sizes,
                                                                         const C& out_backprop,
                                                                         Conv2D::Attrs attrs = {}, const At& at = {}) {
  return apply<Conv2DBackpropFilter>(x, filter_sizes, out_backprop, std::move(attrs), at);
}

}  // namespace dflow
