#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// exp(x) / sum(exp(x)) over the last dimension.
struct Softmax : StandardOp<"Softmax", FloatTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of Softmax by its output y and dy: (dy - sum(dy * y)) * y.
struct SoftmaxGrad : StandardOp<"SoftmaxGrad", FloatTypes> {
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x - log(sum(exp(x))) over the last dimension.
struct LogSoftmax : StandardOp<"LogSoftmax", FloatTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of LogSoftmax by its output y and dy: dy - exp(y) * sum(dy).
struct LogSoftmaxGrad : StandardOp<"LogSoftmaxGrad", FloatTypes> {
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// logits: [..., classes]; gives probabilities of the same shape. Each row sums to 1. Rows are shifted by their
/// maximum, so large logits do not overflow.
///
/// Errors: InvalidArgument if logits is a scalar.
template <AllowedFor<Softmax> T>
Output<T> softmax(const Output<T>& logits, const At& at = {}) {
  return apply<Softmax>(logits, {}, at);
}

/// The logarithms of `softmax(logits)`, exact even if the probabilities underflow.
///
/// Errors: InvalidArgument if logits is a scalar.
template <AllowedFor<LogSoftmax> T>
Output<T> log_softmax(const Output<T>& logits, const At& at = {}) {
  return apply<LogSoftmax>(logits, {}, at);
}

}  // namespace dflow
