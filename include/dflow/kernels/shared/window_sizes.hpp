#pragma once

#include <dflow/core/shape.hpp>
#include <dflow/kernels/shared/conv2d_shape.hpp>
#include <dflow/kernels/shared/pool2d_shape.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/pool2d.hpp>

namespace dflow::detail {

/// Sizes of a convolution; the op's `infer` has checked its shapes.
inline Conv2dShape conv2d_shape(const Conv2DAttrs& attrs, const Shape& input, const Shape& filter) {
  const WindowPlaces rows =
      window_places(input[1], dilated(filter[0], attrs.dilations[1]), attrs.strides[1], attrs.padding);
  const WindowPlaces columns =
      window_places(input[2], dilated(filter[1], attrs.dilations[2]), attrs.strides[2], attrs.padding);
  return {.batch = input[0],
          .in_rows = input[1],
          .in_cols = input[2],
          .in_channels = input[3],
          .filter_rows = filter[0],
          .filter_cols = filter[1],
          .out_channels = filter[3],
          .stride_rows = attrs.strides[1],
          .stride_cols = attrs.strides[2],
          .dilation_rows = filter[0] == 1 ? 1 : attrs.dilations[1],
          .dilation_cols = filter[1] == 1 ? 1 : attrs.dilations[2],
          .pad_top = rows.pad_before,
          .pad_left = columns.pad_before,
          .pad_bottom = rows.pad_after,
          .pad_right = columns.pad_after,
          .groups = filter[2] == 0 ? 1 : input[3] / filter[2]};
}

/// Sizes of a depthwise convolution; the op's `infer` has checked its shapes. Its filter [rows, columns, channels,
/// multiplier] is that of a convolution of `channels` groups, [rows, columns, 1, channels * multiplier].
inline Conv2dShape depthwise_conv2d_shape(const Conv2DAttrs& attrs, const Shape& input, const Shape& filter) {
  return conv2d_shape(attrs, input, {filter[0], filter[1], filter[2] == 0 ? 0 : 1, filter[2] * filter[3]});
}

/// Sizes of a pooling; the op's `infer` has checked its shapes.
inline Pool2dShape pool2d_shape(const Pool2DAttrs& attrs, const Shape& input) {
  const WindowPlaces rows = window_places(input[1], attrs.ksize[1], attrs.strides[1], attrs.padding);
  const WindowPlaces columns = window_places(input[2], attrs.ksize[2], attrs.strides[2], attrs.padding);
  return {.batch = input[0],
          .in_rows = input[1],
          .in_cols = input[2],
          .channels = input[3],
          .window_rows = attrs.ksize[1],
          .window_cols = attrs.ksize[2],
          .stride_rows = attrs.strides[1],
          .stride_cols = attrs.strides[2],
          .pad_top = rows.pad_before,
          .pad_left = columns.pad_before,
          .pad_bottom = rows.pad_after,
          .pad_right = columns.pad_after};
}

}  // namespace dflow::detail
