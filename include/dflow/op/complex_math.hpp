#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/dtype.hpp>

#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

/// Complex numbers for elementwise expressions in code that nvcc compiles for a GPU, where std::complex has no
/// functions. Infinities and NaN behave as on the host, by annex G of the C standard (ISO/IEC 9899:2011).

namespace dflow::math {

/// Laid out as std::complex<T>.
template <std::floating_point T>
struct alignas(2 * sizeof(T)) Complex {
  using value_type = T;

  Complex() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a real number is a complex one
  DFLOW_FN constexpr Complex(T real, T imag = 0) : re(real), im(imag) {}

  DFLOW_FN constexpr T real() const { return re; }
  DFLOW_FN constexpr T imag() const { return im; }

  DFLOW_FN constexpr Complex operator-() const { return {-re, -im}; }
  DFLOW_FN constexpr Complex& operator+=(Complex z) { return *this = Complex(re + z.re, im + z.im); }
  friend DFLOW_FN constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend DFLOW_FN constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend DFLOW_FN constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend DFLOW_FN constexpr bool operator!=(Complex a, Complex b) { return !(a == b); }

  T re, im;
};

namespace detail {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// 1 with the sign of x if x is an infinity, else 0 with the sign of x.
template <class T>
DFLOW_FN T boxed(T x) {
  return std::copysign(std::isinf(x) ? T(1) : T(0), x);
}
template <class T>
DFLOW_FN Complex<T> boxed(Complex<T> z) {
  return {boxed(z.re), boxed(z.im)};
}
/// x, or 0 if x is NaN.
template <class T>
DFLOW_FN T without_nan(T x) {
  return x == x ? x : std::copysign(T(0), x);
}
template <class T>
DFLOW_FN Complex<T> without_nan(Complex<T> z) {
  return {without_nan(z.re), without_nan(z.im)};
}
template <class T>
DFLOW_FN bool is_infinite(Complex<T> z) {
  return std::isinf(z.re) || std::isinf(z.im);
}
template <class T>
DFLOW_FN bool is_finite(Complex<T> z) {
  return z.re - z.re == 0 && z.im - z.im == 0;
}

/// The product if both its parts came out as NaN.
template <class T>
DFLOW_FN Complex<T> recovered_product(Complex<T> a, Complex<T> b) {
  bool is_infinity =
      std::isinf(a.re * b.re) || std::isinf(a.im * b.im) || std::isinf(a.re * b.im) || std::isinf(a.im * b.re);
  const bool a_is = is_infinite(a), b_is = is_infinite(b);
  if (a_is) a = boxed(a);
  if (b_is) b = boxed(b);
  is_infinity = is_infinity || a_is || b_is;
  if (!is_infinity) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  a = without_nan(a);
  b = without_nan(b);
  return {infinity<T> * (a.re * b.re - a.im * b.im), infinity<T> * (a.re * b.im + a.im * b.re)};
}

/// x y where x is 0 whatever y is. Here y is exp(|t|) / 2 of a large t, so the product is taken in two steps.
template <class T>
DFLOW_FN T times_half_exp(T x, T t) {
  const T root = std::exp(std::fabs(t) / 2);
  return x == 0 ? x : x * (root / 2) * root;
}

/// x cosh(t) and x sinh(t), 0 where x is 0, or sinh(t).
template <class T>
DFLOW_FN T times_cosh(T x, T t) {
  if (std::fabs(t) > T(30)) return times_half_exp(x, t);
  return x == 0 ? x : x * std::cosh(t);
}
template <class T>
DFLOW_FN T times_sinh(T x, T t) {
  if (std::fabs(t) > T(30)) return std::copysign(T(1), t) * times_half_exp(x, t);
  if (t == 0) return std::copysign(T(0), std::signbit(x) ? -t : t);
  return x == 0 ? std::copysign(x, std::signbit(x) == std::signbit(t) ? T(1) : T(-1)) : x * std::sinh(t);
}

}  // namespace detail

template <class T>
DFLOW_FN Complex<T> operator*(Complex<T> a, Complex<T> b) {
  const Complex<T> product(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
  return product.re == product.re || product.im == product.im ? product : detail::recovered_product(a, b);
}

template <class T>
DFLOW_FN Complex<T> operator/(Complex<T> a, Complex<T> b) {
  // The divisor is brought near 1, so that its square neither overflows nor vanishes.
  const T log_b = std::logb(std::fmax(std::fabs(b.re), std::fabs(b.im)));
  int shift = 0;
  Complex<T> d = b;
  if (log_b - log_b == 0) {
    shift = static_cast<int>(log_b);
    d = {std::scalbn(b.re, -shift), std::scalbn(b.im, -shift)};
  }
  const T square = d.re * d.re + d.im * d.im;
  constexpr T quarter = T(0.25);
  const bool is_large = std::fmax(std::fabs(a.re), std::fabs(a.im)) > std::numeric_limits<T>::max() * quarter;
  const T re = is_large ? a.re * quarter : a.re, im = is_large ? a.im * quarter : a.im;
  const int back = (is_large ? 2 : 0) - shift;
  const Complex<T> quotient(std::scalbn((re * d.re + im * d.im) / square, back),
                            std::scalbn((im * d.re - re * d.im) / square, back));
  if (quotient.re == quotient.re || quotient.im == quotient.im) return quotient;
  if (square == 0 && (a.re == a.re || a.im == a.im)) {
    const T infinite = std::copysign(detail::infinity<T>, d.re);
    return {infinite * a.re, infinite * a.im};
  }
  if (detail::is_infinite(a) && detail::is_finite(d)) {
    a = detail::boxed(a);
    return {detail::infinity<T> * (a.re * d.re + a.im * d.im), detail::infinity<T> * (a.im * d.re - a.re * d.im)};
  }
  if (log_b == detail::infinity<T> && detail::is_finite(a)) {
    d = detail::boxed(d);
    return {T(0) * (a.re * d.re + a.im * d.im), T(0) * (a.im * d.re - a.re * d.im)};
  }
  return quotient;
}

template <class T>
DFLOW_FN Complex<T> exp(Complex<T> z) {
  if (z.im == 0) return {std::exp(z.re), z.im};
  if (z.re == -detail::infinity<T> && z.im - z.im != 0) return {T(0), std::copysign(T(0), z.im)};
  if (z.re == detail::infinity<T> && z.im - z.im != 0) return {z.re, z.im - z.im};
  const T root = std::exp(z.re / 2);  // the length may be beyond the range where a part of it is not
  return {root * std::cos(z.im) * root, root * std::sin(z.im) * root};
}

template <class T>
DFLOW_FN Complex<T> log(Complex<T> z) {
  const T angle = std::atan2(z.im, z.re);
  const T large = std::fmax(std::fabs(z.re), std::fabs(z.im)), small = std::fmin(std::fabs(z.re), std::fabs(z.im));
  if (large > T(0.5) && large < T(2)) {  // near a length of 1 the logarithm is the small rest
    const double l = large, s = small;
    if (z.re == z.re && z.im == z.im) return {static_cast<T>(std::log1p((l - 1) * (l + 1) + s * s) / 2), angle};
  }
  if (large > std::numeric_limits<T>::max() / 2 && large != detail::infinity<T>) {
    return {std::log(std::hypot(z.re / 2, z.im / 2)) + T(0.69314718055994530942), angle};
  }
  return {std::log(std::hypot(z.re, z.im)), angle};
}

/// The root of non-negative real part.
template <class T>
DFLOW_FN Complex<T> sqrt(Complex<T> z) {
  if (z.re == 0 && z.im == 0) return {T(0), z.im};
  if (std::isinf(z.im)) return {detail::infinity<T>, z.im};
  if (z.re != z.re) return {z.re, z.re};
  if (std::isinf(z.re)) {
    const T rest = z.im - z.im;  // not a number if that is none
    return z.re < 0 ? Complex<T>(std::fabs(rest), std::copysign(z.re, z.im))
                    : Complex<T>(z.re, std::copysign(rest, z.im));
  }
  // Near the ends of the range: the root of another multiple of z, by a factor whose own root is known.
  const T size = std::fmax(std::fabs(z.re), std::fabs(z.im));
  constexpr T large = std::numeric_limits<T>::max() / 4, small = std::numeric_limits<T>::min() * 4;
  const T factor = size > large ? T(1) / 16 : size < small ? T(1 << 24) : T(1);
  const T scale = size > large ? T(4) : size < small ? T(1) / (1 << 12) : T(1);
  const T re = z.re * factor, im = z.im * factor;
  const T length = std::sqrt((std::fabs(re) + std::hypot(re, im)) / 2), other = im / (2 * length);
  if (re >= 0) return {scale * length, scale * other};
  return {scale * std::fabs(other), scale * std::copysign(length, im)};
}

template <class T>
DFLOW_FN Complex<T> sin(Complex<T> z) {
  if (z.re - z.re != 0 && std::isinf(z.im)) return {z.re - z.re, detail::infinity<T>};
  return {detail::times_cosh(std::sin(z.re), z.im), detail::times_sinh(std::cos(z.re), z.im)};
}

template <class T>
DFLOW_FN Complex<T> cos(Complex<T> z) {
  if (z.re - z.re != 0 && std::isinf(z.im)) return {detail::infinity<T>, z.re - z.re};
  return {detail::times_cosh(std::cos(z.re), z.im), -detail::times_sinh(std::sin(z.re), z.im)};
}

/// By Kahan's form, which neither overflows nor cancels (1987, "Branch cuts for complex elementary functions").
template <class T>
DFLOW_FN Complex<T> tanh(Complex<T> z) {
  const T one = std::copysign(T(1), z.re);
  if (z.re != z.re) return {z.re, z.im == 0 ? z.im : z.re};
  if (std::isinf(z.re)) return {one, std::copysign(T(0), std::isinf(z.im) ? z.im : std::sin(z.im) * std::cos(z.im))};
  if (z.im - z.im != 0) return {z.re == 0 ? z.re : z.im - z.im, z.im - z.im};
  if (std::fabs(z.re) > T(22)) {
    const T small = std::exp(-std::fabs(z.re));
    return {one, 4 * std::sin(z.im) * std::cos(z.im) * small * small};
  }
  const T t = std::tan(z.im), beta = 1 + t * t, s = std::sinh(z.re), rho = std::sqrt(1 + s * s);
  if (std::isinf(t)) return {rho / s, 1 / t};
  const T below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}

template <class T>
DFLOW_FN Complex<T> pow(Complex<T> a, Complex<T> b) {
  return exp(b * log(a));
}

namespace detail {
template <class T>
struct DeviceElementOf {
  using type = T;
};
template <class T>
struct DeviceElementOf<std::complex<T>> {
  using type = Complex<T>;
};
}  // namespace detail

/// The type in GPU code for an element of a tensor: the same bytes.
template <class T>
using DeviceElement = typename detail::DeviceElementOf<T>::type;

}  // namespace dflow::math

namespace dflow {

template <class T>
inline constexpr bool is_complex_element<math::Complex<T>> = true;

}  // namespace dflow
