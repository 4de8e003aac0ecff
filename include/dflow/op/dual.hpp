#pragma once

#include <dflow/op/scalar_math.hpp>

#include <type_traits>

namespace dflow::math {

/// A value and its derivative by one variable: arithmetic on dual numbers differentiates an expression exactly
/// (Clifford 1873; Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). Comparisons look at the value alone,
/// so branches and `select` take the derivative of the branch taken.
template <class T>
struct Dual {
  T value{};
  T derivative{};

  constexpr Dual() = default;
  DFLOW_FN constexpr Dual(T v) : value(v) {}  // NOLINT(google-explicit-constructor): a constant has derivative 0
  DFLOW_FN constexpr Dual(T v, T d) : value(v), derivative(d) {}
  template <class N>
    requires(std::is_arithmetic_v<N> && !std::is_same_v<N, T>)
  DFLOW_FN constexpr Dual(N v) : value(static_cast<T>(v)) {}  // NOLINT(google-explicit-constructor)

  DFLOW_FN friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.derivative + b.derivative}; }
  DFLOW_FN friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.derivative - b.derivative}; }
  DFLOW_FN friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
  }
  DFLOW_FN friend Dual operator/(Dual a, Dual b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.derivative - quotient * b.derivative) / b.value};
  }
  DFLOW_FN friend Dual operator-(Dual a) { return {-a.value, -a.derivative}; }
  DFLOW_FN friend Dual operator+(Dual a) { return a; }
  DFLOW_FN friend bool operator<(Dual a, Dual b) { return a.value < b.value; }
  DFLOW_FN friend bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  DFLOW_FN friend bool operator>(Dual a, Dual b) { return a.value > b.value; }
  DFLOW_FN friend bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
  DFLOW_FN friend bool operator==(Dual a, Dual b) { return a.value == b.value; }
  DFLOW_FN friend bool operator!=(Dual a, Dual b) { return a.value != b.value; }
  DFLOW_FN Dual& operator+=(Dual b) { return *this = *this + b; }
  DFLOW_FN Dual& operator-=(Dual b) { return *this = *this - b; }
  DFLOW_FN Dual& operator*=(Dual b) { return *this = *this * b; }
  DFLOW_FN Dual& operator/=(Dual b) { return *this = *this / b; }
};

template <class T>
DFLOW_FN Dual<T> exp(Dual<T> x) {
  const T y = exp(x.value);
  return {y, x.derivative * y};
}
template <class T>
DFLOW_FN Dual<T> log(Dual<T> x) {
  return {log(x.value), x.derivative / x.value};
}
template <class T>
DFLOW_FN Dual<T> log1p(Dual<T> x) {
  return {log1p(x.value), x.derivative / (T(1) + x.value)};
}
template <class T>
DFLOW_FN Dual<T> expm1(Dual<T> x) {
  return {expm1(x.value), x.derivative * exp(x.value)};
}
template <class T>
DFLOW_FN Dual<T> sqrt(Dual<T> x) {
  const T y = sqrt(x.value);
  return {y, x.derivative / (y + y)};
}
template <class T>
DFLOW_FN Dual<T> sin(Dual<T> x) {
  return {sin(x.value), x.derivative * cos(x.value)};
}
template <class T>
DFLOW_FN Dual<T> cos(Dual<T> x) {
  return {cos(x.value), -(x.derivative * sin(x.value))};
}
template <class T>
DFLOW_FN Dual<T> tan(Dual<T> x) {
  const T y = tan(x.value);
  return {y, x.derivative * (T(1) + y * y)};
}
template <class T>
DFLOW_FN Dual<T> tanh(Dual<T> x) {
  const T y = tanh(x.value);
  return {y, x.derivative * (T(1) - y * y)};
}
template <class T>
DFLOW_FN Dual<T> sinh(Dual<T> x) {
  return {sinh(x.value), x.derivative * cosh(x.value)};
}
template <class T>
DFLOW_FN Dual<T> cosh(Dual<T> x) {
  return {cosh(x.value), x.derivative * sinh(x.value)};
}
template <class T>
DFLOW_FN Dual<T> atan(Dual<T> x) {
  return {atan(x.value), x.derivative / (T(1) + x.value * x.value)};
}
template <class T>
DFLOW_FN Dual<T> erf(Dual<T> x) {
  return {erf(x.value), x.derivative * T(1.1283791670955126) * exp(-(x.value * x.value))};  // 2 / sqrt(pi)
}
template <class T>
DFLOW_FN Dual<T> erfc(Dual<T> x) {
  return {erfc(x.value), -(x.derivative * T(1.1283791670955126) * exp(-(x.value * x.value)))};
}
template <class T>
DFLOW_FN Dual<T> abs(Dual<T> x) {
  return select(x.value < T(0), -x, x);
}
template <class T>
DFLOW_FN Dual<T> pow(Dual<T> x, Dual<T> y) {
  const T p = pow(x.value, y.value);
  const T by_base = select(y.value == T(0), T(0), y.value * pow(x.value, y.value - T(1)));
  const T by_exponent = select(x.value > T(0), p * log(x.value), T(0));
  return {p, x.derivative * by_base + y.derivative * by_exponent};
}
template <class T>
DFLOW_FN Dual<T> max(Dual<T> a, Dual<T> b) {
  return select(math::either(a.value < b.value, b.value != b.value), b, a);
}
template <class T>
DFLOW_FN Dual<T> min(Dual<T> a, Dual<T> b) {
  return select(math::either(b.value < a.value, b.value != b.value), b, a);
}
/// Piecewise constant: the derivative is zero.
template <class T>
DFLOW_FN Dual<T> floor(Dual<T> x) {
  return {floor(x.value), T(0)};
}
template <class T>
DFLOW_FN Dual<T> ceil(Dual<T> x) {
  return {ceil(x.value), T(0)};
}

}  // namespace dflow::math

namespace dflow {

template <class T>
using Dual = math::Dual<T>;

}  // namespace dflow
