#pragma once

#include <dflow/kernels/cpu/raw/variants/elementwise_tables.hpp>
#include <dflow/kernels/cpu/raw/variants/lanes.hpp>
#include <dflow/kernels/cpu/raw/variants/math_lanes.hpp>

/// Elementwise ops as vector code. 16-bit floats are computed in float and rounded once.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T> DFLOW_LANE compute_t<T> computed(T x) {
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

template <class T> struct IsHalfBits { static constexpr bool value = false; };
template <> struct IsHalfBits<HalfBits> { static constexpr bool value = converts_half_in_hardware; };

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

/// R: the element type of the result; uint8_t for predicates.
template <class F, class T, class R>
const char* unary_loop(int64_t n, const void* const* inputs, void* output, CpuLevel) {
  const T* x = static_cast<const T*>(inputs[0]);
  R* y = static_cast<R*>(output);
  int64_t begin = 0;
  if constexpr (IsHalfBits<T>::value) begin = half_tiles<F, R, true, true, false>(n, x, x, y);
  DFLOW_INDEPENDENT
  for (int64_t i = begin; i < n; ++i) y[i] = Element<R>::narrow(F::run(computed(x[i])));
  return nullptr;
}

/// An input that does not move stays at its first element.
template <class F, class T, class R, bool first_moves, bool second_moves>
const char* binary_loop(int64_t n, const void* const* inputs, void* output, CpuLevel) {
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

template <class F, class T, class R = T>
inline constexpr BroadcastLoops broadcast_loops = {binary_loop<F, T, R, true, true>, binary_loop<F, T, R, false, true>,
                                                   binary_loop<F, T, R, true, false>};

DFLOW_LANE float root(float x) { return __builtin_sqrtf(x); }
DFLOW_LANE double root(double x) { return __builtin_sqrt(x); }
DFLOW_LANE float magnitude(float x) { return __builtin_fabsf(x); }
DFLOW_LANE double magnitude(double x) { return __builtin_fabs(x); }
DFLOW_LANE float rounded_down(float x) { return __builtin_floorf(x); }
DFLOW_LANE double rounded_down(double x) { return __builtin_floor(x); }
DFLOW_LANE float rounded_up(float x) { return __builtin_ceilf(x); }
DFLOW_LANE double rounded_up(double x) { return __builtin_ceil(x); }
DFLOW_LANE float rounded_to_even(float x) { return __builtin_nearbyintf(x); }
DFLOW_LANE double rounded_to_even(double x) { return __builtin_nearbyint(x); }

// Two arguments.
struct Plus {
  template <class C> static DFLOW_LANE C run(C a, C b) { return static_cast<C>(a + b); }
};
struct Minus {
  template <class C> static DFLOW_LANE C run(C a, C b) { return static_cast<C>(a - b); }
};
struct Times {
  template <class C> static DFLOW_LANE C run(C a, C b) { return static_cast<C>(a * static_cast<decltype(a + 0u)>(b)); }
  static DFLOW_LANE float run(float a, float b) { return a * b; }
  static DFLOW_LANE double run(double a, double b) { return a * b; }
};
struct Over {
  template <class C> static DFLOW_LANE C run(C a, C b) { return a / b; }
};
struct LargerOfTwo {
  template <class C> static DFLOW_LANE C run(C a, C b) { return ((a < b) | (b != b)) ? b : a; }
};
struct SmallerOfTwo {
  template <class C> static DFLOW_LANE C run(C a, C b) { return ((b < a) | (b != b)) ? b : a; }
};
struct DifferenceSquared {
  template <class C> static DFLOW_LANE C run(C a, C b) { return Times::run(Minus::run(a, b), Minus::run(a, b)); }
};
struct IsLess {
  template <class C> static DFLOW_LANE uint8_t run(C a, C b) { return a < b; }
};
struct IsLessOrEqual {
  template <class C> static DFLOW_LANE uint8_t run(C a, C b) { return a <= b; }
};
struct IsEqual {
  template <class C> static DFLOW_LANE uint8_t run(C a, C b) { return a == b; }
};
struct IsUnequal {
  template <class C> static DFLOW_LANE uint8_t run(C a, C b) { return a != b; }
};

// One argument.
struct Negative {
  template <class C> static DFLOW_LANE C run(C x) { return static_cast<C>(-x); }
};
struct Magnitude {
  template <class C> static DFLOW_LANE C run(C x) { return magnitude(x); }
};
struct Inverse {
  template <class C> static DFLOW_LANE C run(C x) { return C(1) / x; }
};
struct Squared {
  template <class C> static DFLOW_LANE C run(C x) { return Times::run(x, x); }
};
struct Root {
  template <class C> static DFLOW_LANE C run(C x) { return root(x); }
};
struct InverseRoot {
  template <class C> static DFLOW_LANE C run(C x) { return C(1) / root(x); }
};
struct SignOf {
  template <class C> static DFLOW_LANE C run(C x) { return x > C(0) ? C(1) : x < C(0) ? C(-1) : x; }
};
struct RoundedDown {
  template <class C> static DFLOW_LANE C run(C x) { return rounded_down(x); }
};
struct RoundedUp {
  template <class C> static DFLOW_LANE C run(C x) { return rounded_up(x); }
};
struct RoundedToEven {
  template <class C> static DFLOW_LANE C run(C x) { return rounded_to_even(x); }
};
struct IsNotANumber {
  template <class C> static DFLOW_LANE uint8_t run(C x) { return x != x; }
};
struct IsInfinite {
  template <class C> static DFLOW_LANE uint8_t run(C x) { return magnitude(x) == static_cast<C>(__builtin_inf()); }
};
struct IsFiniteNumber {
  template <class C> static DFLOW_LANE uint8_t run(C x) { return magnitude(x) < static_cast<C>(__builtin_inf()); }
};
struct Rectified {
  template <class C> static DFLOW_LANE C run(C x) { return x < C(0) ? C(0) : x; }
};
struct Rectified6 {
  template <class C> static DFLOW_LANE C run(C x) {
    const C positive = Rectified::run(x);
    return positive > C(6) ? C(6) : positive;
  }
};
struct EluOf {
  template <class C> static DFLOW_LANE C run(C x) {
    const C below = expm1_lane(x);
    return x < C(0) ? below : x;
  }
};
struct SoftplusOf {
  template <class C> static DFLOW_LANE C run(C x) { return Rectified::run(x) + log1p_lane(exp_lane(-magnitude(x))); }
};
struct SoftsignOf {
  template <class C> static DFLOW_LANE C run(C x) { return x / (C(1) + magnitude(x)); }
};
struct Exponential {
  template <class C> static DFLOW_LANE C run(C x) { return exp_lane(x); }
};
struct Logarithm {
  template <class C> static DFLOW_LANE C run(C x) { return log_lane(x); }
};
struct LogarithmOfOneMore {
  template <class C> static DFLOW_LANE C run(C x) { return log1p_lane(x); }
};
struct HyperbolicTangent {
  template <class C> static DFLOW_LANE C run(C x) { return tanh_lane(x); }
};
struct Logistic {
  template <class C> static DFLOW_LANE C run(C x) { return sigmoid_lane(x); }
};
struct ErrorFunction {
  template <class C> static DFLOW_LANE C run(C x) { return erf_lane(x); }
};

// Gradients, in the order of the ops' inputs.
struct TanhSlope {
  template <class C> static DFLOW_LANE C run(C y, C dy) { return dy * (C(1) - y * y); }
};
struct SigmoidSlope {
  template <class C> static DFLOW_LANE C run(C y, C dy) { return dy * y * (C(1) - y); }
};
struct InverseSlope {
  template <class C> static DFLOW_LANE C run(C y, C dy) { return -dy * y * y; }
};
struct RootSlope {
  template <class C> static DFLOW_LANE C run(C y, C dy) { return dy * C(0.5) / y; }
};
struct InverseRootSlope {
  template <class C> static DFLOW_LANE C run(C y, C dy) { return dy * C(-0.5) * y * y * y; }
};
struct ReluSlope {
  template <class C> static DFLOW_LANE C run(C dy, C x) { return x > C(0) ? dy : C(0); }
};
struct Relu6Slope {
  template <class C> static DFLOW_LANE C run(C dy, C x) { return ((x > C(0)) & (x < C(6))) ? dy : C(0); }
};
struct EluSlope {
  template <class C> static DFLOW_LANE C run(C dy, C y) {
    const C below = dy * (y + C(1));
    return y < C(0) ? below : dy;
  }
};
struct SoftplusSlope {
  template <class C> static DFLOW_LANE C run(C dy, C x) { return dy * sigmoid_lane(x); }
};
struct SoftsignSlope {
  template <class C> static DFLOW_LANE C run(C dy, C x) {
    const C denominator = C(1) + magnitude(x);
    return dy / (denominator * denominator);
  }
};

template <class F, class T> inline constexpr ElementwiseLoop same_shape_loop = binary_loop<F, T, T, true, true>;

template <class T>
inline constexpr FloatElementwiseLoops<T> float_elementwise_table = {
    .add = broadcast_loops<Plus, T>,
    .subtract = broadcast_loops<Minus, T>,
    .multiply = broadcast_loops<Times, T>,
    .divide = broadcast_loops<Over, T>,
    .maximum = broadcast_loops<LargerOfTwo, T>,
    .minimum = broadcast_loops<SmallerOfTwo, T>,
    .squared_difference = broadcast_loops<DifferenceSquared, T>,
    .negate = unary_loop<Negative, T, T>,
    .absolute = unary_loop<Magnitude, T, T>,
    .invert = unary_loop<Inverse, T, T>,
    .square = unary_loop<Squared, T, T>,
    .sqrt = unary_loop<Root, T, T>,
    .rsqrt = unary_loop<InverseRoot, T, T>,
    .sign = unary_loop<SignOf, T, T>,
    .floor = unary_loop<RoundedDown, T, T>,
    .ceil = unary_loop<RoundedUp, T, T>,
    .round = unary_loop<RoundedToEven, T, T>,
    .is_nan = unary_loop<IsNotANumber, T, uint8_t>,
    .is_inf = unary_loop<IsInfinite, T, uint8_t>,
    .is_finite = unary_loop<IsFiniteNumber, T, uint8_t>,
    .tanh_grad = same_shape_loop<TanhSlope, T>,
    .sigmoid_grad = same_shape_loop<SigmoidSlope, T>,
    .invert_grad = same_shape_loop<InverseSlope, T>,
    .sqrt_grad = same_shape_loop<RootSlope, T>,
    .rsqrt_grad = same_shape_loop<InverseRootSlope, T>,
    .relu = unary_loop<Rectified, T, T>,
    .relu6 = unary_loop<Rectified6, T, T>,
    .elu = unary_loop<EluOf, T, T>,
    .softplus = unary_loop<SoftplusOf, T, T>,
    .softsign = unary_loop<SoftsignOf, T, T>,
    .relu_grad = same_shape_loop<ReluSlope, T>,
    .relu6_grad = same_shape_loop<Relu6Slope, T>,
    .elu_grad = same_shape_loop<EluSlope, T>,
    .softplus_grad = same_shape_loop<SoftplusSlope, T>,
    .softsign_grad = same_shape_loop<SoftsignSlope, T>,
};
template <class T> struct TableOf<FloatElementwiseLoops<T>> {
  static constexpr const FloatElementwiseLoops<T>& value = float_elementwise_table<T>;
};

template <class T>
inline constexpr HalfMathLoops<T> half_math_table = {
    .exp = unary_loop<Exponential, T, T>,
    .log = unary_loop<Logarithm, T, T>,
    .log1p = unary_loop<LogarithmOfOneMore, T, T>,
    .tanh = unary_loop<HyperbolicTangent, T, T>,
    .sigmoid = unary_loop<Logistic, T, T>,
    .erf = unary_loop<ErrorFunction, T, T>,
};
template <class T> struct TableOf<HalfMathLoops<T>> {
  static constexpr const HalfMathLoops<T>& value = half_math_table<T>;
};

template <class T>
inline constexpr WrappingElementwiseLoops<T> wrapping_elementwise_table = {
    .add = broadcast_loops<Plus, T>,
    .subtract = broadcast_loops<Minus, T>,
    .multiply = broadcast_loops<Times, T>,
    .squared_difference = broadcast_loops<DifferenceSquared, T>,
    .negate = unary_loop<Negative, T, T>,
    .square = unary_loop<Squared, T, T>,
};
template <class T> struct TableOf<WrappingElementwiseLoops<T>> {
  static constexpr const WrappingElementwiseLoops<T>& value = wrapping_elementwise_table<T>;
};

template <class T>
inline constexpr OrderedElementwiseLoops<T> ordered_elementwise_table = {
    .maximum = broadcast_loops<LargerOfTwo, T>,
    .minimum = broadcast_loops<SmallerOfTwo, T>,
    .relu = unary_loop<Rectified, T, T>,
    .relu_grad = same_shape_loop<ReluSlope, T>,
};
template <class T> struct TableOf<OrderedElementwiseLoops<T>> {
  static constexpr const OrderedElementwiseLoops<T>& value = ordered_elementwise_table<T>;
};

template <class T>
inline constexpr OrderComparisonLoops<T> order_comparison_table = {
    .less = broadcast_loops<IsLess, T, uint8_t>,
    .less_equal = broadcast_loops<IsLessOrEqual, T, uint8_t>,
};
template <class T> struct TableOf<OrderComparisonLoops<T>> {
  static constexpr const OrderComparisonLoops<T>& value = order_comparison_table<T>;
};

template <class T>
inline constexpr EqualityComparisonLoops<T> equality_comparison_table = {
    .equal = broadcast_loops<IsEqual, T, uint8_t>,
    .not_equal = broadcast_loops<IsUnequal, T, uint8_t>,
};
template <class T> struct TableOf<EqualityComparisonLoops<T>> {
  static constexpr const EqualityComparisonLoops<T>& value = equality_comparison_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
