#pragma once

#include <dflow/kernels/cpu/loops/channel_loops.hpp>
#include <dflow/kernels/shared/update_rules.hpp>

/// Optimizer updates in one pass, and the row operations of scatters.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
DFLOW_LANE auto value_of(T x) {
  return Channelwise<T>::get(x);
}

struct UpdateMath {
  static DFLOW_LANE float sqrt(float x) { return __builtin_sqrtf(x); }
  static DFLOW_LANE double sqrt(double x) { return __builtin_sqrt(x); }
  static DFLOW_LANE float abs(float x) { return __builtin_fabsf(x); }
  static DFLOW_LANE double abs(double x) { return __builtin_fabs(x); }
  static DFLOW_LANE float pow(float x, float y) { return __builtin_powf(x, y); }
  static DFLOW_LANE double pow(double x, double y) { return __builtin_pow(x, y); }
};

/// The variables of an update, which share no memory.
template <class T, class Rule>
DFLOW_LANE void update_elements(int64_t n, Rule rule, const T* DFLOW_RESTRICT gradient, void* const* variables) {
  using C = compute_t<T>;
  T* DFLOW_RESTRICT const a = static_cast<T*>(variables[0]);
  if constexpr (Rule::num_variables == 1) {
    for (int64_t i = 0; i < n; ++i) {
      C x = value_of(a[i]);
      rule(value_of(gradient[i]), x);
      a[i] = Element<T>::narrow(x);
    }
  } else if constexpr (Rule::num_variables == 2) {
    T* DFLOW_RESTRICT const b = static_cast<T*>(variables[1]);
    for (int64_t i = 0; i < n; ++i) {
      C x = value_of(a[i]), y = value_of(b[i]);
      rule(value_of(gradient[i]), x, y);
      a[i] = Element<T>::narrow(x);
      b[i] = Element<T>::narrow(y);
    }
  } else if constexpr (Rule::num_variables == 3) {
    T *DFLOW_RESTRICT const b = static_cast<T*>(variables[1]), *DFLOW_RESTRICT const c = static_cast<T*>(variables[2]);
    for (int64_t i = 0; i < n; ++i) {
      C x = value_of(a[i]), y = value_of(b[i]), z = value_of(c[i]);
      rule(value_of(gradient[i]), x, y, z);
      a[i] = Element<T>::narrow(x);
      b[i] = Element<T>::narrow(y);
      c[i] = Element<T>::narrow(z);
    }
  } else {
    T *DFLOW_RESTRICT const b = static_cast<T*>(variables[1]), *DFLOW_RESTRICT const c = static_cast<T*>(variables[2]),
                            *DFLOW_RESTRICT const d = static_cast<T*>(variables[3]);
    for (int64_t i = 0; i < n; ++i) {
      C x = value_of(a[i]), y = value_of(b[i]), z = value_of(c[i]), w = value_of(d[i]);
      rule(value_of(gradient[i]), x, y, z, w);
      a[i] = Element<T>::narrow(x);
      b[i] = Element<T>::narrow(y);
      c[i] = Element<T>::narrow(z);
      d[i] = Element<T>::narrow(w);
    }
  }
}

template <template <class, class> class Rule, class T>
void update_by(int64_t n, void* const* variables, const void* gradient, const double* factors, bool use_nesterov) {
  using C = compute_t<T>;
  C narrow[Rule<C, UpdateMath>::num_factors];
  for (int i = 0; i < Rule<C, UpdateMath>::num_factors; ++i) narrow[i] = static_cast<C>(factors[i]);
  Rule<C, UpdateMath> rule(narrow, use_nesterov);
  const T* const from = static_cast<const T*>(gradient);
  if constexpr (requires { rule.flag; }) {
    if (rule.flag) {
      rule.flag = true;  // a loop without the question
      return update_elements(n, rule, from, variables);
    }
    rule.flag = false;
  }
  update_elements(n, rule, from, variables);
}

template <template <class, class> class Rule, class T>
inline constexpr UpdateLoop<Rule, T> update_table = {update_by<Rule, T>};
template <template <class, class> class Rule, class T>
struct TableOf<UpdateLoop<Rule, T>> {
  static constexpr const UpdateLoop<Rule, T>& value = update_table<Rule, T>;
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
