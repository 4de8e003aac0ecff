#pragma once

#include <dflow/ops/nn/depthwise_conv2d.hpp>
#include <dflow/train/layers.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace dflow {

// Layers beside Convolution2D. x is [batch, rows, columns, channels] of a known number of channels. Variables are in
// x's element type unless the variable scope says otherwise (`VariableScopeOptions::compute`).

struct DepthwiseConv2DOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  std::int64_t multiplier = 1;  ///< filters of each channel
  RowsColumns stride = 1;
  RowsColumns dilation = 1;
  Padding padding = Padding::same;
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string_view name = "depthwise_conv2d";
};

struct SeparableConv2DOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  std::int64_t multiplier = 1;  ///< filters of each channel
  RowsColumns stride = 1;
  RowsColumns dilation = 1;
  Padding padding = Padding::same;
  Initializer depthwise_initializer = init::glorot_uniform();
  Initializer pointwise_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string_view name = "separable_conv2d";
};

struct Conv2DTransposeOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  RowsColumns stride = 1;
  RowsColumns dilation = 1;
  Padding padding = Padding::same;
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string_view name = "conv2d_transpose";
};

/// activation(depthwise_conv2d(x, kernel) + bias): gives [batch, out_rows, out_columns, channels * multiplier]. The
/// variables are "kernel" [window rows, window columns, channels, multiplier] and "bias" [channels * multiplier].
///
/// ```cpp
/// df::DepthwiseConvolution2D blur(3, {.stride = 2});
/// ```
/// Errors, of a call: InvalidArgument unless x has rank 4 and a known number of channels, and all numbers are positive.
class DepthwiseConvolution2D : public Layer {
 public:
  explicit DepthwiseConvolution2D(RowsColumns window, DepthwiseConv2DOptions options = {});
  DepthwiseConvolution2D(const DepthwiseConvolution2D&) = default;
  DepthwiseConvolution2D& operator=(const DepthwiseConvolution2D&) = default;

  template <AllowedFor<DepthwiseConv2dNative> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable kernel() const { return variable("kernel"); }
  /// Errors: NotFound without one.
  AnyVariable bias() const { return variable("bias"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  RowsColumns window_;
  DepthwiseConv2DOptions options_;
};

/// activation(separable_conv2d(x, depthwise_kernel, pointwise_kernel) + bias): gives [batch, out_rows, out_columns,
/// filters]. The variables are "depthwise_kernel" [window rows, window columns, channels, multiplier],
/// "pointwise_kernel" [1, 1, channels * multiplier, filters] and "bias" [filters].
///
/// Errors, of a call: as for `DepthwiseConvolution2D`.
class SeparableConvolution2D : public Layer {
 public:
  SeparableConvolution2D(std::int64_t filters, RowsColumns window, SeparableConv2DOptions options = {});
  SeparableConvolution2D(const SeparableConvolution2D&) = default;
  SeparableConvolution2D& operator=(const SeparableConvolution2D&) = default;

  template <AllowedFor<DepthwiseConv2dNative> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable depthwise_kernel() const { return variable("depthwise_kernel"); }
  AnyVariable pointwise_kernel() const { return variable("pointwise_kernel"); }
  /// Errors: NotFound without one.
  AnyVariable bias() const { return variable("bias"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  std::int64_t filters_;
  RowsColumns window_;
  SeparableConv2DOptions options_;
};

/// activation(conv2d_transpose(x, kernel) + bias), of the shape that `conv2d_transpose` makes where none is given:
/// under SAME [batch, rows * stride, columns * stride, filters]. The variables are "kernel" [window rows, window
/// columns, filters, channels] and "bias" [filters].
///
/// Errors, of a call: as for `DepthwiseConvolution2D`.
class TransposedConvolution2D : public Layer {
 public:
  TransposedConvolution2D(std::int64_t filters, RowsColumns window, Conv2DTransposeOptions options = {});
  TransposedConvolution2D(const TransposedConvolution2D&) = default;
  TransposedConvolution2D& operator=(const TransposedConvolution2D&) = default;

  template <AllowedFor<Conv2D> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable kernel() const { return variable("kernel"); }
  /// Errors: NotFound without one.
  AnyVariable bias() const { return variable("bias"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  std::int64_t filters_;
  RowsColumns window_;
  Conv2DTransposeOptions options_;
};

}  // namespace dflow
