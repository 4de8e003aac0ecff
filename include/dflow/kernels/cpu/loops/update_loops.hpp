#pragma once

#include <dflow/kernels/cpu/loops/channel_loops.hpp>

/// Optimizer updates in one pass, and the row operations of scatters.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
DFLOW_LANE auto value_of(T x) {
  return Channelwise<T>::get(x);
}

DFLOW_LANE float sqrt_lane(float x) { return __builtin_sqrtf(x); }
DFLOW_LANE double sqrt_lane(double x) { return __builtin_sqrt(x); }

template <class T>
void update_gradient_descent(int64_t n, T* DFLOW_RESTRICT var, compute_t<T> lr, const T* DFLOW_RESTRICT grad) {
  for (int64_t i = 0; i < n; ++i) var[i] = Element<T>::narrow(value_of(var[i]) - lr * value_of(grad[i]));
}

template <class T>
void update_momentum(int64_t n, T* DFLOW_RESTRICT var, T* DFLOW_RESTRICT accum, compute_t<T> lr,
                     const T* DFLOW_RESTRICT grad, compute_t<T> momentum, bool use_nesterov) {
  using C = compute_t<T>;
  if (use_nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      const C g = value_of(grad[i]);
      const C a = value_of(accum[i]) * momentum + g;
      accum[i] = Element<T>::narrow(a);
      var[i] = Element<T>::narrow(value_of(var[i]) - lr * (g + momentum * a));
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const C a = value_of(accum[i]) * momentum + value_of(grad[i]);
    accum[i] = Element<T>::narrow(a);
    var[i] = Element<T>::narrow(value_of(var[i]) - lr * a);
  }
}

template <class T>
void update_adam(int64_t n, T* DFLOW_RESTRICT var, T* DFLOW_RESTRICT m, T* DFLOW_RESTRICT v, compute_t<T> lr_t,
                 compute_t<T> beta1, compute_t<T> beta2, compute_t<T> epsilon, bool use_nesterov,
                 const T* DFLOW_RESTRICT grad) {
  using C = compute_t<T>;
  const C rest1 = C(1) - beta1;
  const C rest2 = C(1) - beta2;
  // The direction is m, or with Nesterov's beta1 m + (1 - beta1) grad.
  const C of_m = use_nesterov ? beta1 : C(1);
  const C of_grad = use_nesterov ? rest1 : C(0);
  for (int64_t i = 0; i < n; ++i) {
    const C g = value_of(grad[i]);
    const C old_m = value_of(m[i]);
    const C old_v = value_of(v[i]);
    const C new_m = old_m + rest1 * (g - old_m);
    const C new_v = old_v + rest2 * (g * g - old_v);
    m[i] = Element<T>::narrow(new_m);
    v[i] = Element<T>::narrow(new_v);
    var[i] = Element<T>::narrow(value_of(var[i]) - lr_t * (of_m * new_m + of_grad * g) / (sqrt_lane(new_v) + epsilon));
  }
}

template <class T>
inline constexpr UpdateLoops<T> update_table = {update_gradient_descent<T>, update_momentum<T>, update_adam<T>};
template <class T>
struct TableOf<UpdateLoops<T>> {
  static constexpr const UpdateLoops<T>& value = update_table<T>;
};

template <class C>
inline constexpr bool is_float_lane = __is_same(C, float) || __is_same(C, double);

/// The compiler's complex numbers. Products and quotients treat infinities as C's Annex G says, and quotients stay in
/// range even if the squares of the parts do not.
template <class C>
struct NativeComplex;
template <>
struct NativeComplex<float> {
  __extension__ typedef _Complex float type;
};
template <>
struct NativeComplex<double> {
  __extension__ typedef _Complex double type;
};
template <class C>
DFLOW_LANE auto to_native(ComplexParts<C> x) {
  typename NativeComplex<C>::type z;
  __real__ z = x.re;
  __imag__ z = x.im;
  return z;
}

/// Integers go through unsigned ones, which wrap.
struct AddTo {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    if constexpr (is_float_lane<C>) {
      return a + b;
    } else {
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> of(ComplexParts<C> a, ComplexParts<C> b) {
    return {a.re + b.re, a.im + b.im};
  }
};
struct SubtractFrom {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    if constexpr (is_float_lane<C>) {
      return a - b;
    } else {
      return static_cast<C>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    }
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> of(ComplexParts<C> a, ComplexParts<C> b) {
    return {a.re - b.re, a.im - b.im};
  }
};
struct MultiplyWith {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    if constexpr (is_float_lane<C>) {
      return a * b;
    } else {
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> of(ComplexParts<C> a, ComplexParts<C> b) {
    const auto product = to_native(a) * to_native(b);
    return {__real__ product, __imag__ product};
  }
};
/// Integers: a division by zero leaves the element, since there is no answer; callers check before.
struct DivideBy {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    if constexpr (is_float_lane<C>) {
      return a / b;
    } else if constexpr (static_cast<C>(-1) < C(0)) {
      return b == C(0) ? a : b == C(-1) ? static_cast<C>(0 - static_cast<uint64_t>(a)) : static_cast<C>(a / b);
    } else {
      return b == C(0) ? a : static_cast<C>(a / b);
    }
  }
  template <class C>
  static DFLOW_LANE ComplexParts<C> of(ComplexParts<C> a, ComplexParts<C> b) {
    const auto quotient = to_native(a) / to_native(b);
    return {__real__ quotient, __imag__ quotient};
  }
};
/// Keeps the first of equal elements; a NaN stays.
struct MinimumWith {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};
struct MaximumWith {
  template <class C>
  static DFLOW_LANE C of(C a, C b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};

template <class F, class T>
void apply_row(int64_t n, T* DFLOW_RESTRICT to, const T* DFLOW_RESTRICT x) {
  for (int64_t i = 0; i < n; ++i) to[i] = Element<T>::narrow(F::of(value_of(to[i]), value_of(x[i])));
}

template <class T>
inline constexpr bool is_complex_row = false;
template <class T>
inline constexpr bool is_complex_row<ComplexParts<T>> = true;

template <class T>
constexpr ScatterLoops<T> make_scatter_loops() {
  if constexpr (is_complex_row<T>) {
    return {apply_row<AddTo, T>,
            apply_row<SubtractFrom, T>,
            apply_row<MultiplyWith, T>,
            apply_row<DivideBy, T>,
            nullptr,
            nullptr};
  } else {
    return {apply_row<AddTo, T>,    apply_row<SubtractFrom, T>, apply_row<MultiplyWith, T>,
            apply_row<DivideBy, T>, apply_row<MinimumWith, T>,  apply_row<MaximumWith, T>};
  }
}
template <class T>
inline constexpr ScatterLoops<T> scatter_table = make_scatter_loops<T>();
template <class T>
struct TableOf<ScatterLoops<T>> {
  static constexpr const ScatterLoops<T>& value = scatter_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
