#pragma once

#include <dflow/ops/math/elementwise_op.hpp>

namespace dflow {

// Everything in this file works element by element; integers wrap around.

struct Abs : StandardElementwiseOp<"Abs", SignedRealTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(x < 0 ? 0u - static_cast<std::make_unsigned_t<T>>(x)
                                  : static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return abs(x);
    }
  }
  static void gradient(GradientContext& context);
};

struct Neg : StandardElementwiseOp<"Neg", SignedNumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
  static void gradient(GradientContext& context);
};

struct Inv : StandardElementwiseOp<"Inv", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return T(1) / x;
  }
  static void gradient(GradientContext& context);
};

struct Square : StandardElementwiseOp<"Square", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
      return static_cast<T>(static_cast<U>(x) * static_cast<U>(x));
    } else {
      return x * x;
    }
  }
  static void gradient(GradientContext& context);
};

struct Sqrt : StandardElementwiseOp<"Sqrt", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return sqrt(x);
  }
  static void gradient(GradientContext& context);
};

struct Rsqrt : StandardElementwiseOp<"Rsqrt", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return T(1) / sqrt(x);
  }
  static void gradient(GradientContext& context);
};

struct Exp : StandardElementwiseOp<"Exp", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return exp(x);
  }
  static void gradient(GradientContext& context);
};

struct Log : StandardElementwiseOp<"Log", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return log(x);
  }
  static void gradient(GradientContext& context);
};

struct Log1p : StandardElementwiseOp<"Log1p", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return log1p(x);
  }
  static void gradient(GradientContext& context);
};

struct Tanh : StandardElementwiseOp<"Tanh", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return tanh(x);
  }
  static void gradient(GradientContext& context);
};

struct Sigmoid : StandardElementwiseOp<"Sigmoid", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return T(1) / (T(1) + exp(-x));
  }
  static void gradient(GradientContext& context);
};

struct Sin : StandardElementwiseOp<"Sin", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return sin(x);
  }
  static void gradient(GradientContext& context);
};

struct Cos : StandardElementwiseOp<"Cos", FloatOrComplexTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return cos(x);
  }
  static void gradient(GradientContext& context);
};

struct Sign : StandardElementwiseOp<"Sign", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(x != 0);
    } else {
      return x > T(0) ? T(1) : x < T(0) ? T(-1) : static_cast<T>(x + T(0));  // -0 becomes 0
    }
  }
  static void gradient(GradientContext& context);
};

struct Floor : StandardElementwiseOp<"Floor", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return floor(x);
  }
  static void gradient(GradientContext& context);
};

struct Ceil : StandardElementwiseOp<"Ceil", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return ceil(x);
  }
  static void gradient(GradientContext& context);
};

struct Round : StandardElementwiseOp<"Round", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return rint(x);
  }
  static void gradient(GradientContext& context);
};

struct IsNan : StandardElementwiseOp<"IsNan", FloatTypes> {
  template <class T>
  DFLOW_FN static bool apply(T x) {
    return x != x;
  }
};

struct IsInf : StandardElementwiseOp<"IsInf", FloatTypes> {
  template <class T>
  DFLOW_FN static bool apply(T x) {
    return x == x && x - x != x - x;
  }
};

struct IsFinite : StandardElementwiseOp<"IsFinite", FloatTypes> {
  template <class T>
  DFLOW_FN static bool apply(T x) {
    return x - x == x - x;
  }
};

struct Conj : StandardElementwiseOp<"Conj", ComplexTypes> {
  static constexpr bool chains = false;
  template <class T>
  DFLOW_FN static T apply(T x) {
    return T(x.real(), -x.imag());
  }
  static void gradient(GradientContext& context);
};

using UnaryOps = TypeList<Abs, Neg, Inv, Square, Sqrt, Rsqrt, Exp, Log, Log1p, Tanh, Sigmoid, Sign, Floor, Ceil, Round,
                          IsNan, IsInf, IsFinite, Conj>;
using TrigonometricOps = TypeList<Sin, Cos>;

/// |x|; the smallest integer is its own.
template <AllowedFor<Abs> T>
Output<T> abs(const Output<T>& x, const At& at = {}) {
  return apply<Abs>(x, {}, at);
}
/// -x.
template <AllowedFor<Neg> T>
Output<T> neg(const Output<T>& x, const At& at = {}) {
  return apply<Neg>(x, {}, at);
}
/// 1 / x.
template <AllowedFor<Inv> T>
Output<T> inv(const Output<T>& x, const At& at = {}) {
  return apply<Inv>(x, {}, at);
}
/// x * x.
template <AllowedFor<Square> T>
Output<T> square(const Output<T>& x, const At& at = {}) {
  return apply<Square>(x, {}, at);
}
/// The square root; of a negative float, not a number.
template <AllowedFor<Sqrt> T>
Output<T> sqrt(const Output<T>& x, const At& at = {}) {
  return apply<Sqrt>(x, {}, at);
}
/// 1 / sqrt(x).
template <AllowedFor<Rsqrt> T>
Output<T> rsqrt(const Output<T>& x, const At& at = {}) {
  return apply<Rsqrt>(x, {}, at);
}
/// e to the power of x.
template <AllowedFor<Exp> T>
Output<T> exp(const Output<T>& x, const At& at = {}) {
  return apply<Exp>(x, {}, at);
}
/// The natural logarithm.
template <AllowedFor<Log> T>
Output<T> log(const Output<T>& x, const At& at = {}) {
  return apply<Log>(x, {}, at);
}
/// log(1 + x), exact also for small x.
template <AllowedFor<Log1p> T>
Output<T> log1p(const Output<T>& x, const At& at = {}) {
  return apply<Log1p>(x, {}, at);
}
/// The hyperbolic tangent.
template <AllowedFor<Tanh> T>
Output<T> tanh(const Output<T>& x, const At& at = {}) {
  return apply<Tanh>(x, {}, at);
}
/// 1 / (1 + exp(-x)).
template <AllowedFor<Sigmoid> T>
Output<T> sigmoid(const Output<T>& x, const At& at = {}) {
  return apply<Sigmoid>(x, {}, at);
}
/// The sine of x in radians.
template <AllowedFor<Sin> T>
Output<T> sin(const Output<T>& x, const At& at = {}) {
  return apply<Sin>(x, {}, at);
}
/// The cosine of x in radians.
template <AllowedFor<Cos> T>
Output<T> cos(const Output<T>& x, const At& at = {}) {
  return apply<Cos>(x, {}, at);
}
/// -1, 0 or 1. Its gradient is zero.
template <AllowedFor<Sign> T>
Output<T> sign(const Output<T>& x, const At& at = {}) {
  return apply<Sign>(x, {}, at);
}
/// The largest whole number that is not above x. Its gradient is zero.
template <AllowedFor<Floor> T>
Output<T> floor(const Output<T>& x, const At& at = {}) {
  return apply<Floor>(x, {}, at);
}
/// The smallest whole number that is not below x. Its gradient is zero.
template <AllowedFor<Ceil> T>
Output<T> ceil(const Output<T>& x, const At& at = {}) {
  return apply<Ceil>(x, {}, at);
}
/// The nearest whole number, halves to the even one. Its gradient is zero.
template <AllowedFor<Round> T>
Output<T> round(const Output<T>& x, const At& at = {}) {
  return apply<Round>(x, {}, at);
}
/// Whether x is not a number.
template <AllowedFor<IsNan> T>
Output<bool> is_nan(const Output<T>& x, const At& at = {}) {
  return apply<IsNan>(x, {}, at);
}
/// Whether x is an infinity.
template <AllowedFor<IsInf> T>
Output<bool> is_inf(const Output<T>& x, const At& at = {}) {
  return apply<IsInf>(x, {}, at);
}
/// Whether x is neither an infinity nor not a number.
template <AllowedFor<IsFinite> T>
Output<bool> is_finite(const Output<T>& x, const At& at = {}) {
  return apply<IsFinite>(x, {}, at);
}
/// The complex conjugate.
template <AllowedFor<Conj> T>
Output<T> conj(const Output<T>& x, const At& at = {}) {
  return apply<Conj>(x, {}, at);
}

}  // namespace dflow
