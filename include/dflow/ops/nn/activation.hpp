#pragma once

#include <dflow/ops/math/binary.hpp>

namespace dflow {

// Everything in this file works element by element. A NaN stays a NaN.

/// max(x, 0).
struct Relu : StandardElementwiseOp<"Relu", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? T(0) : x;
    }
  }
  static void gradient(GradientContext& context);
};

/// dy where the features (Relu's input or its output) are positive, else 0.
struct ReluGrad : SameShapeElementwiseOp<"ReluGrad", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T dy, T features) {
    return features > T(0) ? dy : T(0);
  }
  static void gradient(GradientContext& context);
};

/// min(max(x, 0), 6) (Krizhevsky 2010, Convolutional Deep Belief Networks on CIFAR-10).
struct Relu6 : StandardElementwiseOp<"Relu6", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    const T positive = Relu::apply<T>(x);
    return positive > T(6) ? T(6) : positive;
  }
  static void gradient(GradientContext& context);
};

/// dy where the features (Relu6's input or its output) lie between 0 and 6, else 0.
struct Relu6Grad : SameShapeElementwiseOp<"Relu6Grad", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T dy, T features) {
    return features > T(0) ? (features < T(6) ? dy : T(0)) : T(0);
  }
  static void gradient(GradientContext& context);
};

/// x, but exp(x) - 1 below 0 (Clevert et al. 2015, arXiv:1511.07289).
struct Elu : StandardElementwiseOp<"Elu", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return select(x < T(0), expm1(x), x);
  }
  static void gradient(GradientContext& context);
};

/// From Elu's output y: dy, but dy (y + 1) below 0.
struct EluGrad : SameShapeElementwiseOp<"EluGrad", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T dy, T y) {
    return select(y < T(0), dy * (y + T(1)), dy);
  }
  static void gradient(GradientContext& context);
};

/// log(exp(x) + 1), without overflow and exact also for very negative x.
struct Softplus : StandardElementwiseOp<"Softplus", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return Relu::apply<T>(x) + log1p(exp(-abs(x)));
  }
  static void gradient(GradientContext& context);
};

/// dy sigmoid(x).
struct SoftplusGrad : SameShapeElementwiseOp<"SoftplusGrad", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T dy, T x) {
    return dy / (T(1) + exp(-x));
  }
  static void gradient(GradientContext& context);
};

/// x / (1 + |x|).
struct Softsign : StandardElementwiseOp<"Softsign", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + abs(x));
  }
  static void gradient(GradientContext& context);
};

/// dy / (1 + |x|)^2.
struct SoftsignGrad : SameShapeElementwiseOp<"SoftsignGrad", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T dy, T x) {
    const T denominator = T(1) + abs(x);
    return dy / (denominator * denominator);
  }
  static void gradient(GradientContext& context);
};

using ActivationOps =
    TypeList<Relu, ReluGrad, Relu6, Relu6Grad, Elu, EluGrad, Softplus, SoftplusGrad, Softsign, SoftsignGrad>;

/// max(x, 0).
template <AllowedFor<Relu> T>
Output<T> relu(const Output<T>& x, const At& at = {}) {
  return apply<Relu>(x, {}, at);
}
/// min(max(x, 0), 6).
template <AllowedFor<Relu6> T>
Output<T> relu6(const Output<T>& x, const At& at = {}) {
  return apply<Relu6>(x, {}, at);
}
/// x, but exp(x) - 1 below 0.
template <AllowedFor<Elu> T>
Output<T> elu(const Output<T>& x, const At& at = {}) {
  return apply<Elu>(x, {}, at);
}
/// log(exp(x) + 1).
template <AllowedFor<Softplus> T>
Output<T> softplus(const Output<T>& x, const At& at = {}) {
  return apply<Softplus>(x, {}, at);
}
/// x / (1 + |x|).
template <AllowedFor<Softsign> T>
Output<T> softsign(const Output<T>& x, const At& at = {}) {
  return apply<Softsign>(x, {}, at);
}

}  // namespace dflow
