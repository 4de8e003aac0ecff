#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// The operations with which reductions combine numbers, lanes of numbers and the parts of complex numbers.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
inline constexpr bool is_complex_parts = false;
template <class T>
inline constexpr bool is_complex_parts<ComplexParts<T>> = true;

struct Sum {
  template <class V>
  static DFLOW_LANE V combine(V a, V b) {
    return static_cast<V>(a + b);
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> combine(ComplexParts<C> a, ComplexParts<C> b) {
    return {a.re + b.re, a.im + b.im};
  }
  template <class V>
  static DFLOW_LANE V take(V x) {
    return x;
  }
  template <class C>
  static DFLOW_LANE C identity(C) {
    return C{};
  }
};
struct SumOfSquares : Sum {
  template <class V>
  static DFLOW_LANE V take(V x) {
    return static_cast<V>(x * x);
  }
};
struct Prod {
  template <class V>
  static DFLOW_LANE V combine(V a, V b) {
    return static_cast<V>(a * b);
  }
  static DFLOW_LANE uint16_t combine(uint16_t a, uint16_t b) { return static_cast<uint16_t>(uint32_t{a} * b); }
  template <class C>
  static DFLOW_LANE ComplexParts<C> combine(ComplexParts<C> a, ComplexParts<C> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  template <class V>
  static DFLOW_LANE V take(V x) {
    return x;
  }
  template <class C>
  static DFLOW_LANE C identity(C) {
    return C(1);
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> identity(ComplexParts<C>) {
    return {C(1), C(0)};
  }
};

template <class C>
struct Limits {
  static constexpr bool is_signed = static_cast<C>(-1) < C(0);
  static constexpr C lowest = is_signed ? static_cast<C>(C(1) << (8 * sizeof(C) - 2)) * -2 : C(0);
  static constexpr C highest = static_cast<C>(~static_cast<uint64_t>(lowest));
};
template <>
struct Limits<float> {
  static constexpr float lowest = -__builtin_inff(), highest = __builtin_inff();
};
template <>
struct Limits<double> {
  static constexpr double lowest = -__builtin_inf(), highest = __builtin_inf();
};

/// A NaN on either side is the result.
struct Maximum {
  template <class V>
  static DFLOW_LANE V combine(V a, V b) {
    return ((a > b) | (a != a)) ? a : b;
  }
  template <class V>
  static DFLOW_LANE V take(V x) {
    return x;
  }
  template <class C>
  static DFLOW_LANE C identity(C) {
    return Limits<C>::lowest;
  }
};
struct Minimum {
  template <class V>
  static DFLOW_LANE V combine(V a, V b) {
    return ((a < b) | (a != a)) ? a : b;
  }
  template <class V>
  static DFLOW_LANE V take(V x) {
    return x;
  }
  template <class C>
  static DFLOW_LANE C identity(C) {
    return Limits<C>::highest;
  }
};

/// For positions: the larger one, a NaN never.
struct Larger {
  template <class V>
  static DFLOW_LANE V combine(V best, V x) {
    return x > best ? x : best;
  }
  template <class C>
  static DFLOW_LANE auto better(C x, C best) {
    return x > best;
  }
  template <class C>
  static DFLOW_LANE C worst(C) {
    return Limits<C>::lowest;
  }
};
struct Smaller {
  template <class V>
  static DFLOW_LANE V combine(V best, V x) {
    return x < best ? x : best;
  }
  template <class C>
  static DFLOW_LANE auto better(C x, C best) {
    return x < best;
  }
  template <class C>
  static DFLOW_LANE C worst(C) {
    return Limits<C>::highest;
  }
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
