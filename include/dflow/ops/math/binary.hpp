#pragma once

#include <dflow/ops/math/elementwise_op.hpp>

namespace dflow {

// Everything in this file works element by element with NumPy broadcasting; integers wrap around.

struct Add : StandardElementwiseOp<"Add", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(detail::Wrapping<T>(a) + detail::Wrapping<T>(b));
    } else {
      return a + b;
    }
  }
  static void gradient(GradientContext& context);
};

struct Sub : StandardElementwiseOp<"Sub", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(detail::Wrapping<T>(a) - detail::Wrapping<T>(b));
    } else {
      return a - b;
    }
  }
  static void gradient(GradientContext& context);
};

struct Mul : StandardElementwiseOp<"Mul", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(detail::Wrapping<T>(a) * detail::Wrapping<T>(b));
    } else {
      return a * b;
    }
  }
  static void gradient(GradientContext& context);
};

/// Integers are divided as in C: the quotient is rounded towards zero.
struct Div : StandardElementwiseOp<"Div", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T(-1)) return static_cast<T>(detail::Wrapping<T>(0) - detail::Wrapping<T>(a));
    }
    return static_cast<T>(a / b);
  }
  template <std::integral T>
  DFLOW_FN static const char* check(T, T b) {
    return b == 0 ? "integer division by zero" : nullptr;
  }
  static void gradient(GradientContext& context);
};

/// The remainder of the same division, with the sign of a; fmod for floats.
struct Mod : StandardElementwiseOp<"Mod", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return static_cast<T>(a % b);
    } else {
      return fmod(a, b);
    }
  }
  template <std::integral T>
  DFLOW_FN static const char* check(T, T b) {
    return b == 0 ? "integer division by zero" : nullptr;
  }
};

struct Pow : StandardElementwiseOp<"Pow", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      detail::Wrapping<T> power = 1, base = static_cast<detail::Wrapping<T>>(a);
      for (auto left = static_cast<detail::Wrapping<T>>(b); left != 0; left >>= 1, base *= base) {
        if ((left & 1) != 0) power *= base;
      }
      return static_cast<T>(power);
    } else {
      return pow(a, b);
    }
  }
  template <std::signed_integral T>
  DFLOW_FN static const char* check(T, T b) {
    return b < 0 ? "an integer to a negative power" : nullptr;
  }
  static void gradient(GradientContext& context);
};

/// A NaN stays a NaN.
struct Maximum : StandardElementwiseOp<"Maximum", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return static_cast<bool>(int(a < b) | int(b != b)) ? b : a;  // one choice, which compilers vectorise
  }
  static void gradient(GradientContext& context);
};

/// A NaN stays a NaN.
struct Minimum : StandardElementwiseOp<"Minimum", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return b < a ? b : (b != b ? b : a);
  }
  static void gradient(GradientContext& context);
};

/// The square of the difference; for complex numbers, its squared absolute value.
struct SquaredDifference : StandardElementwiseOp<"SquaredDifference", NumberTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    const T difference = Sub::apply<T>(a, b);
    if constexpr (is_complex_element<T>) {
      return T(difference.real() * difference.real() + difference.imag() * difference.imag());
    } else {
      return Mul::apply<T>(difference, difference);
    }
  }
  static void gradient(GradientContext& context);
};

using BinaryOps = TypeList<Add, Sub, Mul, Div, Maximum, Minimum, SquaredDifference>;
using PowerOps = TypeList<Mod, Pow>;

/// a + b.
///
/// Errors of all builders of this file: InvalidArgument if the shapes do not broadcast together.
template <class A, class B>
  requires Accepts<Add, A, B>
Output<ElementFor<Add, A, B>> add(const A& a, const B& b, const At& at = {}) {
  return apply<Add>(a, b, {}, at);
}
/// a - b.
template <class A, class B>
  requires Accepts<Sub, A, B>
Output<ElementFor<Sub, A, B>> sub(const A& a, const B& b, const At& at = {}) {
  return apply<Sub>(a, b, {}, at);
}
/// a * b.
template <class A, class B>
  requires Accepts<Mul, A, B>
Output<ElementFor<Mul, A, B>> mul(const A& a, const B& b, const At& at = {}) {
  return apply<Mul>(a, b, {}, at);
}
/// a / b. An integer divisor of zero fails the step with InvalidArgument; the smallest integer by -1 is itself.
template <class A, class B>
  requires Accepts<Div, A, B>
Output<ElementFor<Div, A, B>> div(const A& a, const B& b, const At& at = {}) {
  return apply<Div>(a, b, {}, at);
}
/// The remainder of a / b, with the sign of a. An integer divisor of zero fails the step with InvalidArgument.
template <class A, class B>
  requires Accepts<Mod, A, B>
Output<ElementFor<Mod, A, B>> mod(const A& a, const B& b, const At& at = {}) {
  return apply<Mod>(a, b, {}, at);
}
/// a to the power of b. A negative power of integers fails the step with InvalidArgument.
template <class A, class B>
  requires Accepts<Pow, A, B>
Output<ElementFor<Pow, A, B>> pow(const A& a, const B& b, const At& at = {}) {
  return apply<Pow>(a, b, {}, at);
}
/// The larger of a and b; its gradient goes to a where they are equal.
template <class A, class B>
  requires Accepts<Maximum, A, B>
Output<ElementFor<Maximum, A, B>> maximum(const A& a, const B& b, const At& at = {}) {
  return apply<Maximum>(a, b, {}, at);
}
/// The smaller of a and b; its gradient goes to a where they are equal.
template <class A, class B>
  requires Accepts<Minimum, A, B>
Output<ElementFor<Minimum, A, B>> minimum(const A& a, const B& b, const At& at = {}) {
  return apply<Minimum>(a, b, {}, at);
}
/// (a - b)^2, in one pass.
template <class A, class B>
  requires Accepts<SquaredDifference, A, B>
Output<ElementFor<SquaredDifference, A, B>> squared_difference(const A& a, const B& b, const At& at = {}) {
  return apply<SquaredDifference>(a, b, {}, at);
}

}  // namespace dflow
