#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/nn/depthwise_conv2d.hpp>

#include <array>
#include <cstdint>
#include <utility>

/// Convolutions of TensorFlow's library that other ops express.

namespace dflow {

/// Options of a convolution over one dimension. Elements of the filter lie `dilation` apart on the input.
struct Conv1DOptions {
  std::int64_t stride = 1;
  Padding padding = Padding::valid;
  std::int64_t dilation = 1;
};

namespace detail {
/// The edges are x and filter.
AnyOutput any_conv1d(const std::array<AnyOutput, 2>& edges, const Conv1DOptions& options, const At& at);
/// The edges are x, the depthwise and the pointwise filter.
AnyOutput any_separable_conv2d(const std::array<AnyOutput, 3>& edges, Conv2DAttrs attrs, const At& at);
AnyOutput any_conv2d_transpose(const std::array<AnyOutput, 2>& edges, const IndexList& output_shape, Conv2DAttrs attrs,
                               const At& at);
}  // namespace detail

/// y[b, i, k] = sum over di, q of x[b, stride * i + dilation * di, q] filter[di, q, k]: x [batch, width, in_channels],
/// filter [window, in_channels, out_channels]. Gives [batch, out_width, out_channels]. A filter of fewer channels means
/// groups, as in `conv2d`.
///
/// ```cpp
/// auto y = df::conv1d(samples, filter, {.stride = 2, .padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument unless both have rank 3, and as for `conv2d`.
template <class A, class B>
  requires Accepts<Conv2D, A, B>
Output<ElementFor<Conv2D, A, B>> conv1d(const A& x, const B& filter, const Conv1DOptions& options = {},
                                        const At& at = {}) {
  return Output<ElementFor<Conv2D, A, B>>::unchecked(
      detail::any_conv1d(detail::edges_for<Conv2D>(at, x, filter), options, at));
}

/// `depthwise_conv2d` with depthwise_filter, and then a convolution of its pixels with pointwise_filter [1, 1, channels
/// * multiplier, out_channels]. A full convolution has as many factors in one filter as these two have together, and
/// more products.
///
/// ```cpp
/// auto y = df::separable_conv2d(images, depthwise, pointwise, {.padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument as for `depthwise_conv2d`, and unless pointwise_filter has one row, one column, and as many
/// input channels as the depthwise convolution gives.
template <class A, class B, class C>
  requires Accepts<DepthwiseConv2dNative, A, B> && Accepts<Conv2D, A, C>
Output<ElementFor<DepthwiseConv2dNative, A, B>> separable_conv2d(const A& x, const B& depthwise_filter,
                                                                 const C& pointwise_filter, Conv2DAttrs attrs = {},
                                                                 const At& at = {}) {
  const auto [images, depthwise] = detail::edges_for<DepthwiseConv2dNative>(at, x, depthwise_filter);
  const AnyOutput pointwise = detail::edges_for<Conv2D>(at, x, pointwise_filter)[1];
  return Output<ElementFor<DepthwiseConv2dNative, A, B>>::unchecked(
      detail::any_separable_conv2d({images, depthwise, pointwise}, std::move(attrs), at));
}

/// Spreads each pixel of x over a window: the gradient of `conv2d` with respect to its input, for x as the gradient of
/// its output. x: [batch, rows, columns, in_channels], filter: [window_rows, window_columns, out_channels,
/// in_channels]. Gives [batch, out_rows, out_columns, out_channels], which is `output_shape`.
///
/// Several shapes have a convolution of the extents of x. Without an output_shape it is that of Keras: under SAME
/// rows * stride; under VALID rows * stride + max(0, window - stride), where `window` is the dilated one.
///
/// ```cpp
/// auto twice = df::conv2d_transpose(x, filter, {}, {.strides = {1, 2, 2, 1}, .padding = df::Padding::same});
/// auto other = df::conv2d_transpose(x, filter, {8, 15, 15, 3}, {.strides = {1, 2, 2, 1}, .padding =
/// df::Padding::same});
/// ```
/// Errors: InvalidArgument as for `conv2d`, and if a convolution of output_shape does not give the shape of x; in the
/// step if the shape is known only there.
template <class A, class B>
  requires Accepts<Conv2D, A, B>
Output<ElementFor<Conv2D, A, B>> conv2d_transpose(const A& x, const B& filter, const IndexList& output_shape = {},
                                                  Conv2DAttrs attrs = {}, const At& at = {}) {
  return Output<ElementFor<Conv2D, A, B>>::unchecked(
      detail::any_conv2d_transpose(detail::edges_for<Conv2D>(at, x, filter), output_shape, std::move(attrs), at));
}

}  // namespace dflow
