#pragma once

#include <dflow/kernels/cpu/raw/variants/lanes.hpp>
#include <dflow/kernels/cpu/raw/variants/math_lanes.hpp>

/// Elementary functions of arrays; the result may be the argument.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

struct ExpOf {
  template <class T> static DFLOW_LANE T of(T x) { return exp_lane(x); }
};
struct Expm1Of {
  template <class T> static DFLOW_LANE T of(T x) { return expm1_lane(x); }
};
struct LogOf {
  template <class T> static DFLOW_LANE T of(T x) { return log_lane(x); }
};
struct Log1pOf {
  template <class T> static DFLOW_LANE T of(T x) { return log1p_lane(x); }
};
struct TanhOf {
  template <class T> static DFLOW_LANE T of(T x) { return tanh_lane(x); }
};
struct SigmoidOf {
  template <class T> static DFLOW_LANE T of(T x) { return sigmoid_lane(x); }
};
struct ErfOf {
  template <class T> static DFLOW_LANE T of(T x) { return erf_lane(x); }
};

template <class T, class F> void map_array(int64_t n, const T* x, T* y) {
  DFLOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = F::of(x[i]);
}

/// Tiles of moderate numbers do without exp.
inline void sigmoid_array(int64_t n, const float* x, float* y) {
  constexpr int64_t tile = 256;
  for (int64_t begin = 0; begin < n; begin += tile) {
    const int64_t count = min_of<int64_t>(tile, n - begin);
    int below = 0;
    for (int64_t i = begin; i < begin + count; ++i) below |= x[i] > -2.5f ? 0 : 1;
    if (below != 0) {
      map_array<float, SigmoidOf>(count, x + begin, y + begin);
      continue;
    }
    DFLOW_INDEPENDENT
    for (int64_t i = begin; i < begin + count; ++i) y[i] = sigmoid_moderate(x[i]);
  }
}
inline void sigmoid_array(int64_t n, const double* x, double* y) { map_array<double, SigmoidOf>(n, x, y); }

DFLOW_LANE float libm_sin(float x, bool cosine) { return cosine ? __builtin_cosf(x) : __builtin_sinf(x); }
DFLOW_LANE double libm_sin(double x, bool cosine) { return cosine ? __builtin_cos(x) : __builtin_sin(x); }

template <class T, bool cosine> void sin_array(int64_t n, const T* x, T* y) {
  constexpr int64_t tile = 256;
  for (int64_t begin = 0; begin < n; begin += tile) {
    const int64_t count = min_of<int64_t>(tile, n - begin);
    const T* from = x + begin;
    T* to = y + begin;
    int outside = 0;
    for (int64_t i = 0; i < count; ++i) outside |= abs_lane(from[i]) <= largest_angle<T> ? 0 : 1;
    if (outside != 0) {
      for (int64_t i = 0; i < count; ++i) to[i] = libm_sin(from[i], cosine);
      continue;
    }
    DFLOW_INDEPENDENT
    for (int64_t i = 0; i < count; ++i)
      to[i] = !cosine && from[i] == T(0) ? from[i] : sin_lane(from[i], cosine ? 1 : 0);
  }
}

template <class T>
inline constexpr MathLoops<T> math_table = {
    map_array<T, ExpOf>,     map_array<T, Expm1Of>, map_array<T, LogOf>, map_array<T, Log1pOf>, map_array<T, TanhOf>,
    map_array<T, SigmoidOf>, sin_array<T, false>,   sin_array<T, true>,  map_array<T, ErfOf>,
};
template <class T> struct TableOf<MathLoops<T>> { static constexpr const MathLoops<T>& value = math_table<T>; };

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
