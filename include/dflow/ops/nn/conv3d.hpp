#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/window.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace dflow {

/// Attributes of `conv3d`; strides are [1, planes, rows, columns, 1].
struct Conv3DAttrs {
  std::vector<std::int64_t> strides{1, 1, 1, 1, 1};
  Padding padding = Padding::valid;
};

namespace detail {
AnyOutput any_conv3d(const AnyOutput& x, const AnyOutput& filter, const Conv3DAttrs& attrs, const At& at);
}  // namespace detail

/// Three-dimensional convolution (cross-correlation) of volumes with a filter, TensorFlow's Conv3D:
///
/// y[b, d, i, j, k] = sum over dd, di, dj, q of
/// x[b, stride_planes * d + dd, stride_rows * i + di, stride_columns * j + dj, q] filter[dd, di, dj, q, k].
///
/// x: [batch, in_planes, in_rows, in_columns, in_channels], filter: [planes, rows, columns, in_channels, out_channels].
/// Gives [batch, out_planes, out_rows, out_columns, out_channels] with the extents of `Padding`. The node is one
/// `conv2d` of images with the channels of all planes that a window covers. The gradients are those of `conv2d`, of any
/// order: TensorFlow's Conv3DBackpropInput and Conv3DBackpropFilter. Each plane of the filter takes a copy of x.
///
/// ```cpp
/// auto y = df::conv3d(video, filter, {.strides = {1, 1, 2, 2, 1}, .padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument unless both have rank 5, the number of the filter's planes is known when the node is built,
/// and the channels agree. Strides must be [1, planes, rows, columns, 1] with positive numbers. Without padding, the
/// filter must fit into x; in the step if an extent is known only there.
template <class T>
  requires contains_v<T, FloatTypes>
Output<T> conv3d(const Output<T>& x, const std::type_identity_t<Output<T>>& filter, const Conv3DAttrs& attrs = {},
                 const At& at = {}) {
  return Output<T>::unchecked(detail::any_conv3d(x, filter, attrs, at));
}

}  // namespace dflow
