#pragma once

#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/special_functions.hpp>

namespace dflow {

/// The logarithm of the absolute value of the gamma function.
struct Lgamma : StandardElementwiseOp<"Lgamma", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return lgamma(x);
  }
  static void gradient(GradientContext& context);
};

/// The derivative of Lgamma.
struct Digamma : StandardElementwiseOp<"Digamma", FloatTypes> {
  static constexpr bool chains = false;
  template <class T>
  DFLOW_FN static T apply(T x) {
    return T(math::digamma(static_cast<double>(x)));
  }
  static void gradient(GradientContext& context);
};

/// dy times the derivative of digamma at x.
struct DigammaGrad : SameShapeElementwiseOp<"DigammaGrad", FloatTypes> {
  static constexpr bool chains = false;
  template <class T>
  DFLOW_FN static T apply(T x, T dy) {
    return T(static_cast<double>(dy) * math::trigamma(static_cast<double>(x)));
  }
  static void gradient(GradientContext& context);
};

/// The error function.
struct Erf : StandardElementwiseOp<"Erf", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return erf(x);
  }
  static void gradient(GradientContext& context);
};

/// 1 - Erf, exact also for large x.
struct Erfc : StandardElementwiseOp<"Erfc", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return erfc(x);
  }
  static void gradient(GradientContext& context);
};

/// The regularised lower incomplete gamma function P(a, x).
struct Igamma : StandardElementwiseOp<"Igamma", FloatTypes> {
  static constexpr bool chains = false;
  template <class T>
  DFLOW_FN static T apply(T a, T x) {
    return T(math::igamma(static_cast<double>(a), static_cast<double>(x)));
  }
  static void gradient(GradientContext& context);
};

/// The regularised upper incomplete gamma function Q(a, x).
struct Igammac : StandardElementwiseOp<"Igammac", FloatTypes> {
  static constexpr bool chains = false;
  template <class T>
  DFLOW_FN static T apply(T a, T x) {
    return T(math::igammac(static_cast<double>(a), static_cast<double>(x)));
  }
  static void gradient(GradientContext& context);
};

using SpecialOps = TypeList<Lgamma, Digamma, DigammaGrad, Erf, Erfc, Igamma, Igammac>;

/// log |gamma(x)|.
template <AllowedFor<Lgamma> T>
Output<T> lgamma(const Output<T>& x, const At& at = {}) {
  return apply<Lgamma>(x, {}, at);
}
/// The derivative of lgamma(x); -infinity at 0, infinity at -0, NaN at the negative whole numbers.
template <AllowedFor<Digamma> T>
Output<T> digamma(const Output<T>& x, const At& at = {}) {
  return apply<Digamma>(x, {}, at);
}
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
template <AllowedFor<Erf> T>
Output<T> erf(const Output<T>& x, const At& at = {}) {
  return apply<Erf>(x, {}, at);
}
/// 1 - erf(x).
template <AllowedFor<Erfc> T>
Output<T> erfc(const Output<T>& x, const At& at = {}) {
  return apply<Erfc>(x, {}, at);
}
/// P(a, x), with broadcasting: P(0, x) is 1 and P(a, 0) is 0. NaN unless a >= 0 and x >= 0; NaN also where both are 0
/// or both infinite. Differentiable by x only.
template <class A, class B>
  requires Accepts<Igamma, A, B>
Output<ElementFor<Igamma, A, B>> igamma(const A& a, const B& x, const At& at = {}) {
  return apply<Igamma>(a, x, {}, at);
}
/// Q(a, x) = 1 - P(a, x), with broadcasting; NaN where P is NaN. Differentiable by x only.
template <class A, class B>
  requires Accepts<Igammac, A, B>
Output<ElementFor<Igammac, A, B>> igammac(const A& a, const B& x, const At& at = {}) {
  return apply<Igammac>(a, x, {}, at);
}

}  // namespace dflow
