#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/window.hpp>

#include <type_traits>

namespace dflow {

struct BatchNormAttrs {
  double epsilon = 1e-4;
  bool is_training = true;
  DataFormat data_format = DataFormat::nhwc;
};

/// Normalises each channel (Ioffe and Szegedy 2015, arXiv:1502.03167). Inputs: x, scale, offset, mean, variance.
/// Outputs: y, and the mean and variance of the channels. In training they are computed from x, and the inputs mean and
/// variance are not read; otherwise they are the given inputs.
///
/// U, the type of the parameters, is double if T is double, and float if T is half, bfloat16 or float. Outputs 1 and 2
/// are for running averages: the variance is the unbiased variance. Outputs 3 and 4 are for the gradient: the mean and
/// the plain variance.
struct FusedBatchNorm : StandardOp<"FusedBatchNorm", FloatTypes, TypeList<float, double>> {
  using Attrs = BatchNormAttrs;
  using Inputs = In<T, U, U, U, U>;
  using Outputs = Out<T, U, U, U, U>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of FusedBatchNorm. Inputs: y_backprop, x, scale, and the mean and variance that y was made with
/// (outputs 3 and 4 of FusedBatchNorm). Outputs: the gradients by x, scale and offset.
struct FusedBatchNormGrad : StandardOp<"FusedBatchNormGrad", FloatTypes, TypeList<float, double>> {
  using Attrs = BatchNormAttrs;
  using Inputs = In<T, T, U, U, U>;
  using Outputs = Out<T, U, U>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The type of the parameters of batch normalisation over elements of type T.
template <class T>
using BatchNormParameter = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <Element T>
struct BatchNormResult {
  Output<T> y;                                   ///< the shape of x
  Output<BatchNormParameter<T>> batch_mean;      ///< [channels]
  Output<BatchNormParameter<T>> batch_variance;  ///< [channels], unbiased: for running averages
};

namespace detail {
BuiltNode any_fused_batch_norm(const AnyOutput& x, const AnyOutput& scale, const AnyOutput& offset,
                               const AnyOutput& mean, const AnyOutput& variance, const BatchNormAttrs& attrs,
                               const At& at);
}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * scale + offset, with the mean and variance of x over all dimensions but
/// the last.
///
/// x: [batch, rows, columns, channels], scale and offset: [channels].
/// Errors: InvalidArgument if x does not have rank 4, or a parameter does not have one element per channel.
template <AllowedFor<FusedBatchNorm> T>
BatchNormResult<T> fused_batch_norm(const Output<T>& x, const Operand<BatchNormParameter<T>>& scale,
                                    const Operand<BatchNormParameter<T>>& offset, double epsilon = 1e-3,
                                    const At& at = {}) {
  using U = BatchNormParameter<T>;
  const BuiltNode node =
      detail::any_fused_batch_norm(x, scale.beside(x), offset.beside(x), {}, {}, {.epsilon = epsilon}, at);
  return {Output<T>::unchecked(node.output(0)), Output<U>::unchecked(node.output(1)),
          Output<U>::unchecked(node.output(2))};
}

/// The same with a given mean and variance, [channels] each, for a trained network.
template <AllowedFor<FusedBatchNorm> T>
Output<T> fused_batch_norm(const Output<T>& x, const Operand<BatchNormParameter<T>>& scale,
                           const Operand<BatchNormParameter<T>>& offset, const Operand<BatchNormParameter<T>>& mean,
                           const Operand<BatchNormParameter<T>>& variance, double epsilon = 1e-3, const At& at = {}) {
  const BatchNormAttrs attrs{.epsilon = epsilon, .is_training = false};
  return Output<T>::unchecked(
      detail::any_fused_batch_norm(x, scale.beside(x), offset.beside(x), mean.beside(x), variance.beside(x), attrs, at)
          .output(0));
}

}  // namespace dflow
