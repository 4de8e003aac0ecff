#pragma once

#include <dflow/ops/math/elementwise_op.hpp>

namespace dflow {

// Gradients of ops in one pass, from the op's output y (as in TensorFlow) and the gradient dy with respect to it. Both
// have one shape.

/// dy (1 - y^2), y = tanh(x).
struct TanhGrad : SameShapeElementwiseOp<"TanhGrad", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
  static void gradient(GradientContext& context);
};

/// dy y (1 - y), y = sigmoid(x).
struct SigmoidGrad : SameShapeElementwiseOp<"SigmoidGrad", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T y, T dy) {
    return dy * y * (T(1) - y);
  }
  static void gradient(GradientContext& context);
};

/// -dy y^2, y = 1 / x.
struct InvGrad : SameShapeElementwiseOp<"InvGrad", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T y, T dy) {
    return -dy * y * y;
  }
  static void gradient(GradientContext& context);
};

/// dy / (2 y), y = sqrt(x).
struct SqrtGrad : SameShapeElementwiseOp<"SqrtGrad", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T y, T dy) {
    return dy * T(0.5f) / y;
  }
  static void gradient(GradientContext& context);
};

/// -dy y^3 / 2, y = 1 / sqrt(x).
struct RsqrtGrad : SameShapeElementwiseOp<"RsqrtGrad", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T y, T dy) {
    return dy * T(-0.5f) * y * y * y;
  }
  static void gradient(GradientContext& context);
};

using UnaryGradientOps = TypeList<TanhGrad, SigmoidGrad, InvGrad, SqrtGrad, RsqrtGrad>;

}  // namespace dflow
