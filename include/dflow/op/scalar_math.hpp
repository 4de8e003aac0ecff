#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>

#include <cmath>
#include <complex>
#include <concepts>
#include <type_traits>

/// The functions that an elementwise expression may call, for every type it is evaluated on. The types are float and
/// double, half precision by way of float, integers and complex numbers where that makes sense, and dual numbers,
/// which differentiate it.

namespace dflow::math {

template <class T>
concept HalfPrecision = std::same_as<T, Half> || std::same_as<T, BFloat16>;

/// `condition ? a : b` as a function: the form that vectorises and differentiates alike.
template <class T>
DFLOW_FN constexpr T select(bool condition, T a, std::type_identity_t<T> b) {
  return condition ? a : b;
}

template <std::floating_point T>
DFLOW_FN T exp(T x) {
  return std::exp(x);
}
template <HalfPrecision T>
DFLOW_FN T exp(T x) {
  return T(std::exp(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T log(T x) {
  return std::log(x);
}
template <HalfPrecision T>
DFLOW_FN T log(T x) {
  return T(std::log(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T log1p(T x) {
  return std::log1p(x);
}
template <HalfPrecision T>
DFLOW_FN T log1p(T x) {
  return T(std::log1p(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T expm1(T x) {
  return std::expm1(x);
}
template <HalfPrecision T>
DFLOW_FN T expm1(T x) {
  return T(std::expm1(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T sqrt(T x) {
  return std::sqrt(x);
}
template <HalfPrecision T>
DFLOW_FN T sqrt(T x) {
  return T(std::sqrt(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T sin(T x) {
  return std::sin(x);
}
template <HalfPrecision T>
DFLOW_FN T sin(T x) {
  return T(std::sin(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T cos(T x) {
  return std::cos(x);
}
template <HalfPrecision T>
DFLOW_FN T cos(T x) {
  return T(std::cos(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T tan(T x) {
  return std::tan(x);
}
template <HalfPrecision T>
DFLOW_FN T tan(T x) {
  return T(std::tan(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T tanh(T x) {
  return std::tanh(x);
}
template <HalfPrecision T>
DFLOW_FN T tanh(T x) {
  return T(std::tanh(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T sinh(T x) {
  return std::sinh(x);
}
template <HalfPrecision T>
DFLOW_FN T sinh(T x) {
  return T(std::sinh(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T cosh(T x) {
  return std::cosh(x);
}
template <HalfPrecision T>
DFLOW_FN T cosh(T x) {
  return T(std::cosh(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T atan(T x) {
  return std::atan(x);
}
template <HalfPrecision T>
DFLOW_FN T atan(T x) {
  return T(std::atan(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T erf(T x) {
  return std::erf(x);
}
template <HalfPrecision T>
DFLOW_FN T erf(T x) {
  return T(std::erf(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T erfc(T x) {
  return std::erfc(x);
}
template <HalfPrecision T>
DFLOW_FN T erfc(T x) {
  return T(std::erfc(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T floor(T x) {
  return std::floor(x);
}
template <HalfPrecision T>
DFLOW_FN T floor(T x) {
  return T(std::floor(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T ceil(T x) {
  return std::ceil(x);
}
template <HalfPrecision T>
DFLOW_FN T ceil(T x) {
  return T(std::ceil(static_cast<float>(x)));
}
/// To the nearest whole number, halves to the even one.
template <std::floating_point T>
DFLOW_FN T rint(T x) {
  return std::nearbyint(x);
}
template <HalfPrecision T>
DFLOW_FN T rint(T x) {
  return T(std::nearbyint(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T fmod(T x, T y) {
  return std::fmod(x, y);
}
template <HalfPrecision T>
DFLOW_FN T fmod(T x, T y) {
  return T(std::fmod(static_cast<float>(x), static_cast<float>(y)));
}
/// Not std::lgamma, which writes the sign to a global variable.
template <std::floating_point T>
DFLOW_FN inline T lgamma(T x) {
#if defined(__GLIBC__) && !defined(__CUDA_ARCH__)
  int sign = 0;
  if constexpr (sizeof(T) == sizeof(float)) {
    return ::lgammaf_r(x, &sign);
  } else {
    return ::lgamma_r(x, &sign);
  }
#else
  return std::lgamma(x);
#endif
}
template <HalfPrecision T>
DFLOW_FN T lgamma(T x) {
  return T(lgamma(static_cast<float>(x)));
}
template <std::floating_point T>
DFLOW_FN T pow(T x, T y) {
  return std::pow(x, y);
}
template <HalfPrecision T>
DFLOW_FN T pow(T x, T y) {
  return T(std::pow(static_cast<float>(x), static_cast<float>(y)));
}
template <class T>
  requires(std::is_arithmetic_v<T> || HalfPrecision<T>)
DFLOW_FN T abs(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(x);
  } else if constexpr (HalfPrecision<T>) {
    return T(std::fabs(static_cast<float>(x)));
  } else {
    return x < T(0) ? T(-x) : x;
  }
}
/// a || b without a branch, which a loop that is vectorised has not.
DFLOW_FN inline bool either(bool a, bool b) { return (static_cast<int>(a) | static_cast<int>(b)) != 0; }
/// Not a number if either is none; the first if they are equal, as of `min`.
template <class T>
  requires(std::is_arithmetic_v<T> || HalfPrecision<T>)
DFLOW_FN T max(T a, T b) {
  return either(a < b, b != b) ? b : a;
}
template <class T>
  requires(std::is_arithmetic_v<T> || HalfPrecision<T>)
DFLOW_FN T min(T a, T b) {
  return either(b < a, b != b) ? b : a;
}

template <class T>
std::complex<T> exp(std::complex<T> x) {
  return std::exp(x);
}
template <class T>
std::complex<T> log(std::complex<T> x) {
  return std::log(x);
}
template <class T>
std::complex<T> sqrt(std::complex<T> x) {
  return std::sqrt(x);
}
template <class T>
std::complex<T> sin(std::complex<T> x) {
  return std::sin(x);
}
template <class T>
std::complex<T> cos(std::complex<T> x) {
  return std::cos(x);
}
template <class T>
std::complex<T> tanh(std::complex<T> x) {
  return std::tanh(x);
}
template <class T>
std::complex<T> pow(std::complex<T> x, std::complex<T> y) {
  return std::pow(x, y);
}

}  // namespace dflow::math
