#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>
#include <dflow/kernels/cpu/loops/loop_ops.hpp>
#include <dflow/kernels/cpu/loops/math_lanes.hpp>

#include <cstddef>
#include <type_traits>

/// Elementwise ops as vector code, made of their expressions. 16-bit floats are computed in float and rounded once.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
DFLOW_LANE compute_t<T> computed(T x) {
  if constexpr (sizeof(compute_t<T>) != sizeof(T)) {
    return widen(x);
  } else {
    return x;
  }
}

#if defined(__F16C__)
inline constexpr bool converts_half_in_hardware = true;

typedef float Floats8 __attribute__((vector_size(32)));
typedef short Shorts8 __attribute__((vector_size(16)));

/// n is a multiple of 8.
DFLOW_LANE void widen_tile(int64_t n, const HalfBits* x, float* y) {
  for (int64_t i = 0; i < n; i += 8) {
    Shorts8 bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    const Floats8 wide = __builtin_ia32_vcvtph2ps256(bits);
    __builtin_memcpy(y + i, &wide, sizeof wide);
  }
}
DFLOW_LANE void narrow_tile(int64_t n, const float* x, HalfBits* y) {
  for (int64_t i = 0; i < n; i += 8) {
    Floats8 wide;
    __builtin_memcpy(&wide, x + i, sizeof wide);
    const Shorts8 bits = __builtin_ia32_vcvtps2ph256(wide, 0);
    __builtin_memcpy(y + i, &bits, sizeof bits);
  }
}
#else
inline constexpr bool converts_half_in_hardware = false;
#endif

template <class T>
struct IsHalfBits {
  static constexpr bool value = false;
};
template <>
struct IsHalfBits<HalfBits> {
  static constexpr bool value = converts_half_in_hardware;
};

/// Elements that are converted, computed and converted back at a time.
inline constexpr int64_t half_tile = 256;

/// The loops below in tiles, with the processor's own conversions; returns how many elements are done, a multiple of 8.
/// With no b the op has one argument.
template <class F, class R, bool first_moves, bool second_moves, bool has_second>
int64_t half_tiles([[maybe_unused]] int64_t n, [[maybe_unused]] const HalfBits* a, [[maybe_unused]] const HalfBits* b,
                   [[maybe_unused]] R* y) {
#if defined(__F16C__)
  float left[half_tile], right[half_tile], result[half_tile];
  if (!first_moves) {
    for (int64_t i = 0; i < half_tile; ++i) left[i] = widen(a[0]);
  }
  if (has_second && !second_moves) {
    for (int64_t i = 0; i < half_tile; ++i) right[i] = widen(b[0]);
  }
  int64_t begin = 0;
  for (int64_t count; (count = min_of<int64_t>(half_tile, n - begin) & ~int64_t{7}) > 0; begin += count) {
    if (first_moves) widen_tile(count, a + begin, left);
    if (has_second && second_moves) widen_tile(count, b + begin, right);
    if constexpr (sizeof(R) == sizeof(HalfBits)) {
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (has_second) {
          result[i] = F::run(left[i], right[i]);
        } else {
          result[i] = F::run(left[i]);
        }
      }
      narrow_tile(count, result, y + begin);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (has_second) {
          y[begin + i] = F::run(left[i], right[i]);
        } else {
          y[begin + i] = F::run(left[i]);
        }
      }
    }
  }
  return begin;
#else
  return 0;
#endif
}

/// The operand of an expression of floating-point numbers: its functions come from `math_lanes.hpp`.
template <class C>
struct Lane {
  C value;

  DFLOW_LANE explicit Lane(C x) : value(x) {}
  template <class X>
  DFLOW_LANE explicit Lane(X x) : value(static_cast<C>(x)) {}

  friend DFLOW_LANE Lane operator+(Lane a, Lane b) { return Lane(a.value + b.value); }
  friend DFLOW_LANE Lane operator-(Lane a, Lane b) { return Lane(a.value - b.value); }
  friend DFLOW_LANE Lane operator*(Lane a, Lane b) { return Lane(a.value * b.value); }
  friend DFLOW_LANE Lane operator/(Lane a, Lane b) { return Lane(a.value / b.value); }
  friend DFLOW_LANE Lane operator-(Lane x) { return Lane(-x.value); }
  friend DFLOW_LANE bool operator==(Lane a, Lane b) { return a.value == b.value; }
  friend DFLOW_LANE bool operator!=(Lane a, Lane b) { return a.value != b.value; }
  friend DFLOW_LANE bool operator<(Lane a, Lane b) { return a.value < b.value; }
  friend DFLOW_LANE bool operator<=(Lane a, Lane b) { return a.value <= b.value; }
  friend DFLOW_LANE bool operator>(Lane a, Lane b) { return a.value > b.value; }
  friend DFLOW_LANE bool operator>=(Lane a, Lane b) { return a.value >= b.value; }

  static DFLOW_LANE Lane exp(Lane x) { return Lane(exp_lane(x.value)); }
  static DFLOW_LANE Lane log(Lane x) { return Lane(log_lane(x.value)); }
  static DFLOW_LANE Lane log1p(Lane x) { return Lane(log1p_lane(x.value)); }
  static DFLOW_LANE Lane expm1(Lane x) { return Lane(expm1_lane(x.value)); }
  static DFLOW_LANE Lane tanh(Lane x) { return Lane(tanh_lane(x.value)); }
  static DFLOW_LANE Lane erf(Lane x) { return Lane(erf_lane(x.value)); }
  static DFLOW_LANE Lane max(Lane a, Lane b) { return a.value < b.value ? b : a; }
  static DFLOW_LANE Lane min(Lane a, Lane b) { return b.value < a.value ? b : a; }
  static DFLOW_LANE Lane sqrt(Lane x) {
    if constexpr (sizeof(C) == sizeof(float)) {
      return Lane(__builtin_sqrtf(x.value));
    } else {
      return Lane(__builtin_sqrt(x.value));
    }
  }
  static DFLOW_LANE Lane abs(Lane x) {
    if constexpr (sizeof(C) == sizeof(float)) {
      return Lane(__builtin_fabsf(x.value));
    } else {
      return Lane(__builtin_fabs(x.value));
    }
  }
  static DFLOW_LANE Lane floor(Lane x) {
    if constexpr (sizeof(C) == sizeof(float)) {
      return Lane(__builtin_floorf(x.value));
    } else {
      return Lane(__builtin_floor(x.value));
    }
  }
  static DFLOW_LANE Lane ceil(Lane x) {
    if constexpr (sizeof(C) == sizeof(float)) {
      return Lane(__builtin_ceilf(x.value));
    } else {
      return Lane(__builtin_ceil(x.value));
    }
  }
  static DFLOW_LANE Lane rint(Lane x) {
    if constexpr (sizeof(C) == sizeof(float)) {
      return Lane(__builtin_nearbyintf(x.value));
    } else {
      return Lane(__builtin_nearbyint(x.value));
    }
  }
};

template <class C>
DFLOW_LANE C number_of(Lane<C> x) {
  return x.value;
}
template <class C>
DFLOW_LANE C number_of(C x) {
  return x;
}
DFLOW_LANE uint8_t number_of(bool x) { return x; }

/// The expression of op O on plain numbers.
template <class O>
struct Expression {
  template <class C>
  using Number = std::conditional_t<std::is_floating_point_v<C>, Lane<C>, C>;
  template <class... C>
  static DFLOW_LANE auto run(C... x) {
    using N = Number<std::common_type_t<C...>>;
    return number_of(O::template apply<N>(static_cast<N>(x)...));
  }
};

/// The loops' own name for an element type: the same memory, no member functions.
template <class T>
struct Stored {
  using type = T;
};
template <>
struct Stored<Half> {
  using type = HalfBits;
};
template <>
struct Stored<BFloat16> {
  using type = BFloat16Bits;
};
template <>
struct Stored<bool> {
  using type = uint8_t;
};
template <class T>
using stored_t = typename Stored<T>::type;

template <class O, class T, class R>
const char* unary_loop(int64_t n, const void* const* inputs, void* output, CpuLevel) {
  using F = Expression<O>;
  const T* x = static_cast<const T*>(inputs[0]);
  R* y = static_cast<R*>(output);
  int64_t begin = 0;
  if constexpr (IsHalfBits<T>::value) begin = half_tiles<F, R, true, true, false>(n, x, x, y);
  DFLOW_INDEPENDENT
  for (int64_t i = begin; i < n; ++i) y[i] = Element<R>::narrow(F::run(computed(x[i])));
  return nullptr;
}

/// An input that does not move stays at its first element.
template <class O, class T, class R, bool first_moves, bool second_moves>
const char* binary_loop(int64_t n, const void* const* inputs, void* output, CpuLevel) {
  using F = Expression<O>;
  const T* a = static_cast<const T*>(inputs[0]);
  const T* b = static_cast<const T*>(inputs[1]);
  R* y = static_cast<R*>(output);
  if (n == 0) return nullptr;
  const compute_t<T> first_a = computed(a[0]), first_b = computed(b[0]);
  int64_t begin = 0;
  if constexpr (IsHalfBits<T>::value) begin = half_tiles<F, R, first_moves, second_moves, true>(n, a, b, y);
  DFLOW_INDEPENDENT
  for (int64_t i = begin; i < n; ++i) {
    const compute_t<T> left = first_moves ? computed(a[i]) : first_a, right = second_moves ? computed(b[i]) : first_b;
    y[i] = Element<R>::narrow(F::run(left, right));
  }
  return nullptr;
}

template <class O>
constexpr bool does_broadcast() {
  if constexpr (requires { O::broadcasts; }) {
    return O::broadcasts;
  } else {
    return true;
  }
}

template <class O, class T>
constexpr ElementwiseLoops loops_of_expression() {
  using R = stored_t<std::conditional_t<is_predicate<O>, bool, T>>;
  if constexpr (elementwise_arity<O> == 1) {
    return {unary_loop<O, stored_t<T>, R>};
  } else if constexpr (does_broadcast<O>()) {
    return {binary_loop<O, stored_t<T>, R, true, true>, binary_loop<O, stored_t<T>, R, false, true>,
            binary_loop<O, stored_t<T>, R, true, false>};
  } else {
    return {binary_loop<O, stored_t<T>, R, true, true>};
  }
}

template <class O, class T>
inline constexpr ElementwiseLoops elementwise_table = loops_of_expression<O, T>();
template <class O, class T>
const ElementwiseLoops& elementwise_loops() {
  return elementwise_table<O, T>;
}

template <class O, class T>
constexpr auto loops_if_any() -> const ElementwiseLoops& (*)() {
  if constexpr (detail::has_loops<O, T>) {
    return &elementwise_loops<O, T>;
  } else {
    return nullptr;
  }
}

/// Instantiated for an element type, it brings the loops of all ops for it.
template <class T, class List = LoopOps>
struct LoopsFor;
template <class T, class... Ops>
struct LoopsFor<T, TypeList<Ops...>> {
  static constexpr const ElementwiseLoops& (*all[])() = {loops_if_any<Ops, T>()...};
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
