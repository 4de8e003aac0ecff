#pragma once

/// Pooling of sequences and of volumes. The builders are two-dimensional pools between reshapes, with their kernels,
/// gradients of any order, and their exactness.

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/pool2d.hpp>
#include <dflow/ops/nn/window.hpp>

#include <cstdint>
#include <vector>

namespace dflow {

/// The windows of `avg_pool1d` and `max_pool1d`.
struct Pool1DAttrs {
  std::int64_t ksize = 1;
  std::int64_t strides = 1;
  Padding padding = Padding::valid;
};

/// The windows of `avg_pool3d` and `max_pool3d`: [1, planes, rows, columns, 1].
struct Pool3DAttrs {
  std::vector<std::int64_t> ksize{1, 1, 1, 1, 1};
  std::vector<std::int64_t> strides{1, 1, 1, 1, 1};
  Padding padding = Padding::valid;
};

namespace detail {
AnyOutput any_pool1d(bool is_max, const AnyOutput& x, const Pool1DAttrs& attrs, const At& at);
AnyOutput any_pool3d(bool is_max, const AnyOutput& x, const Pool3DAttrs& attrs, const At& at);
}  // namespace detail

/// x: [batch, in_length, channels] gives the mean of each window: [batch, out_length, channels]. Padding is not
/// counted.
///
/// Errors: InvalidArgument unless x has rank 3 and window and stride are positive. Without padding, the window must fit
/// into x; in the step if the length is known only there.
template <AllowedFor<AvgPool> T>
Output<T> avg_pool1d(const Output<T>& x, const Pool1DAttrs& attrs, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pool1d(false, x, attrs, at));
}
/// The same with the largest element of each window.
template <AllowedFor<MaxPool> T>
Output<T> max_pool1d(const Output<T>& x, const Pool1DAttrs& attrs, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pool1d(true, x, attrs, at));
}

/// x: [batch, in_planes, in_rows, in_columns, channels] gives the mean of each window: [batch, out_planes, out_rows,
/// out_columns, channels], with the extents of `Padding`. Padding is not counted: a window at the border has the mean
/// of its elements inside x. 16-bit floats are added in float, and the mean is rounded once. TensorFlow's AvgPool3D:
/// it takes the mean over rows and columns, and then over planes, which is the same number for less work.
///
/// ```cpp
/// auto y = df::avg_pool3d(video, {.ksize = {1, 2, 3, 3, 1}, .strides = {1, 2, 2, 2, 1}});
/// ```
/// Errors: InvalidArgument unless x has rank 5. Window and strides must be [1, planes, rows, columns, 1] with positive
/// numbers below 2^31. Without padding, the window must fit into x; in the step if an extent is known only there.
template <AllowedFor<AvgPool> T>
Output<T> avg_pool3d(const Output<T>& x, const Pool3DAttrs& attrs, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pool3d(false, x, attrs, at));
}
/// The same with the largest element of each window, TensorFlow's MaxPool3D. Padding never wins, and a NaN stays a NaN.
/// The gradient of a window goes to its first maximum, in the order of the elements.
template <AllowedFor<MaxPool> T>
Output<T> max_pool3d(const Output<T>& x, const Pool3DAttrs& attrs, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pool3d(true, x, attrs, at));
}

}  // namespace dflow
