#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/window.hpp>

#include <vector>

namespace dflow {

/// Attributes of pooling and of its gradients. `ksize` (the window) and `strides` apply to the input's dimensions: [1,
/// rows, columns, 1].
struct Pool2DAttrs {
  std::vector<std::int64_t> ksize{1, 1, 1, 1};
  std::vector<std::int64_t> strides{1, 1, 1, 1};
  Padding padding = Padding::valid;
  DataFormat data_format = DataFormat::nhwc;
};

/// The mean of each window.
struct AvgPool : StandardOp<"AvgPool", FloatTypes> {
  using Attrs = Pool2DAttrs;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of AvgPool: orig_input_shape [4], grad.
struct AvgPoolGrad : StandardOp<"AvgPoolGrad", FloatTypes> {
  using Attrs = Pool2DAttrs;
  using Inputs = In<std::int32_t, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The largest element of each window.
struct MaxPool : StandardOp<"MaxPool", RealTypes> {
  using Attrs = Pool2DAttrs;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of MaxPool: orig_input, orig_output, grad. The first of equal maxima in a window gets the gradient.
struct MaxPoolGrad : StandardOp<"MaxPoolGrad", FloatTypes> {
  using Attrs = Pool2DAttrs;
  using Inputs = In<T, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of MaxPoolGrad with respect to grad. Inputs: orig_input, orig_output, and a tensor of the shape of
/// orig_input. Gives, for each window, the element of the third input at the place of the maximum.
struct MaxPoolGradGrad : StandardOp<"MaxPoolGradGrad", FloatTypes> {
  using Attrs = Pool2DAttrs;
  using Inputs = In<T, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// The output's shape for an input of rank 4; checks window, strides and format.
PartialShape infer_pool2d(const InferContext& context, const Pool2DAttrs& attrs, const PartialShape& input);
}  // namespace detail

/// x: [batch, in_rows, in_columns, channels] gives [batch, out_rows, out_columns, channels] with the extents of
/// `Padding`. Padding is not counted: a window at the border has the mean of its elements inside x.
///
/// ```cpp
/// auto y = df::avg_pool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}, .padding = df::Padding::same});
/// ```
/// Errors: InvalidArgument unless x has rank 4 and the format is NHWC. Window and strides must be [1, rows, columns, 1]
/// with positive rows and columns. Without padding, the window must fit into x.
template <AllowedFor<AvgPool> T>
Output<T> avg_pool(const Output<T>& x, AvgPool::Attrs attrs, const At& at = {}) {
  return apply<AvgPool>(x, std::move(attrs), at);
}

/// As `avg_pool`, with the largest element of each window. Padding never wins, and a NaN stays a NaN.
template <AllowedFor<MaxPool> T>
Output<T> max_pool(const Output<T>& x, MaxPool::Attrs attrs, const At& at = {}) {
  return apply<MaxPool>(x, std::move(attrs), at);
}

}  // namespace dflow
