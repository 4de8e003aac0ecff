#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>
#include <dflow/kernels/cpu/loops/math_lanes.hpp>

/// Elementary functions of arrays; the result may be the argument.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

struct ExpOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return exp_lane(x);
  }
};
struct Expm1Of {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return expm1_lane(x);
  }
};
struct LogOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return log_lane(x);
  }
};
struct Log1pOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return log1p_lane(x);
  }
};
struct TanhOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return tanh_lane(x);
  }
};
struct SigmoidOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return sigmoid_lane(x);
  }
};
struct ErfOf {
  template <class T>
  static DFLOW_LANE T of(T x) {
    return erf_lane(x);
  }
};

template <class T, class F>
void map_array(int64_t n, const T* x, T* y) {
  DFLOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = F::of(x[i]);
}

/// Whether exp of each number is a normal number.
DFLOW_LANE bool are_moderate(int64_t n, const float* x) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude =
        bits_of(x[i]) & 0x7fffffffu;  // those of infinities and NaNs are larger than any number's
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < bits_of(moderate_limit);
}

/// Tiles of moderate numbers take half the time. The bits of an element do not depend on the tile it lies in.
inline constexpr int64_t math_tile = 512;

inline void exp_array(int64_t n, const float* x, float* y) {
  for (int64_t begin = 0; begin < n; begin += math_tile) {
    const int64_t count = min_of(math_tile, n - begin);
    if (are_moderate(count, x + begin)) {
      DFLOW_INDEPENDENT
      for (int64_t i = begin; i < begin + count; ++i) y[i] = exp_moderate<float, uint32_t>(x[i]);
    } else {
      map_array<float, ExpOf>(count, x + begin, y + begin);
    }
  }
}
inline void exp_array(int64_t n, const double* x, double* y) { map_array<double, ExpOf>(n, x, y); }

/// a / b for normal numbers, to a unit in the last place.
DFLOW_LANE Vec<float> quotient(Vec<float> a, Vec<float> b) {
#if defined(__AVX512F__)
  // 14 bits, doubled by a step of Newton's method; a division takes several times as long.
  const Vec<float> r = __builtin_ia32_rcp14ps512_mask(b, Vec<float>{}, static_cast<unsigned short>(-1));
  return a * (r + r * (1.0f - b * r));
#else
  return a / b;
#endif
}

/// x within [-limit, limit]; a NaN stays one.
DFLOW_LANE Vec<float> clamp_register(Vec<float> x, float limit) {
#if defined(__AVX512F__) && defined(__clang__)
  return __builtin_ia32_minps512(splat(limit), __builtin_ia32_maxps512(splat(-limit), x, 4), 4);
#elif defined(__AVX512F__)
  // gcc makes a comparison and a blend of each of the conditions below.
  constexpr auto all = static_cast<unsigned short>(-1);
  const Vec<float> low = __builtin_ia32_maxps512_mask(splat(-limit), x, x, all, 4);
  return __builtin_ia32_minps512_mask(splat(limit), low, low, all, 4);
#else
  const Vec<float> low = x < -limit ? splat(-limit) : x;
  return low > limit ? splat(limit) : low;
#endif
}

/// The smaller of x and the limit, which it is for a NaN too.
DFLOW_LANE Vec<float> at_most(Vec<float> x, float limit) {
#if defined(__AVX512F__) && defined(__clang__)
  return __builtin_ia32_minps512(x, splat(limit), 4);
#elif defined(__AVX512F__)
  return __builtin_ia32_minps512_mask(x, splat(limit), x, static_cast<unsigned short>(-1), 4);
#else
  return x < limit ? x : splat(limit);
#endif
}

/// As tanh_lane.
DFLOW_LANE Vec<float> tanh_register(Vec<float> x) {
  const Vec<float> z = at_most(x * x, TanhQuotient::largest_square);
  Vec<float> p = z * TanhQuotient::p[0] + TanhQuotient::p[1];
  Vec<float> q = z * TanhQuotient::q[0] + TanhQuotient::q[1];
#pragma GCC unroll 4
  for (int i = 2; i < 5; ++i) {
    p = p * z + TanhQuotient::p[i];
    q = q * z + TanhQuotient::q[i];
  }
  return clamp_register(quotient(x * p, q), 1.0f);
}

/// The last elements go through a whole register too, so that the bits do not depend on the place.
inline void tanh_array(int64_t n, const float* x, float* y) {
  int64_t i = 0;
  for (; i + lanes<float> <= n; i += lanes<float>) store(y + i, tanh_register(load(x + i)));
  if (i == n) return;
  float rest[lanes<float>] = {};
  for (int64_t j = i; j < n; ++j) rest[j - i] = x[j];
  store(rest, tanh_register(load(rest)));
  for (int64_t j = i; j < n; ++j) y[j] = rest[j - i];
}
inline void tanh_array(int64_t n, const double* x, double* y) { map_array<double, TanhOf>(n, x, y); }

/// 1 / (1 + exp(-x)) of moderate numbers, whole registers of them. The lowest bits of `shifted` are the biased exponent
/// of the power of two.
DFLOW_LANE void sigmoid_moderate(int64_t n, const float* x, float* y) {
  constexpr float magic = FloatTraits<float>::magic + static_cast<float>(FloatTraits<float>::bias);
  for (int64_t i = 0; i < n; i += lanes<float>) {
    const Vec<float> v = load(x + i);
    const Vec<float> shifted = v * -1.44269504088896341f + magic;
    const Vec<float> exponent = shifted - magic;
    const Vec<float> p = exp_of_remainder((-v - exponent * 0.693359375f) - exponent * -2.12194440e-4f);
    const auto scale = __builtin_bit_cast(Vec<float>, __builtin_bit_cast(Vec<uint32_t>, shifted) << 23);
    store(y + i, quotient(splat(1.0f), p * scale + 1.0f));
  }
}

inline void sigmoid_array(int64_t n, const float* x, float* y) {
  for (int64_t begin = 0; begin < n; begin += math_tile) {
    const int64_t count = min_of(math_tile, n - begin);
    const float* from = x + begin;
    float* to = y + begin;
    if (count % lanes<float> == 0 && are_moderate(count, from)) {
      sigmoid_moderate(count, from, to);
      continue;
    }
    float moderate[math_tile], result[math_tile];
    const int64_t whole = (count + lanes<float> - 1) / lanes<float> * lanes<float>;
    for (int64_t i = 0; i < whole; ++i) {
      const float v = i < count ? from[i] : 0.0f;
      moderate[i] = abs_lane(v) < moderate_limit ? v : 0.0f;
    }
    sigmoid_moderate(whole, moderate, result);
    for (int64_t i = 0; i < count; ++i) {
      const float v = from[i];
      to[i] = abs_lane(v) < moderate_limit ? result[i] : v > 0.0f ? 1.0f : exp_lane(v);
    }
  }
}
inline void sigmoid_array(int64_t n, const double* x, double* y) { map_array<double, SigmoidOf>(n, x, y); }

DFLOW_LANE float libm_sin(float x, bool cosine) { return cosine ? __builtin_cosf(x) : __builtin_sinf(x); }
DFLOW_LANE double libm_sin(double x, bool cosine) { return cosine ? __builtin_cos(x) : __builtin_sin(x); }

/// Angles up to largest_angle.
template <class T, bool cosine>
DFLOW_LANE void sin_moderate(int64_t n, const T* x, T* y) {
  DFLOW_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = !cosine && x[i] == T(0) ? x[i] : sin_lane(x[i], cosine ? 1 : 0);
}

/// Large angles, infinities and NaN are left to libm, one by one: an element's bits depend on no other element.
template <class T, bool cosine>
void sin_array(int64_t n, const T* x, T* y) {
  constexpr int64_t tile = 256;
  for (int64_t begin = 0; begin < n; begin += tile) {
    const int64_t count = min_of<int64_t>(tile, n - begin);
    const T* from = x + begin;
    T* to = y + begin;
    int outside = 0;
    for (int64_t i = 0; i < count; ++i) outside |= abs_lane(from[i]) <= largest_angle<T> ? 0 : 1;
    if (outside == 0) {
      sin_moderate<T, cosine>(count, from, to);
      continue;
    }
    T moderate[tile], result[tile];
    for (int64_t i = 0; i < count; ++i) moderate[i] = abs_lane(from[i]) <= largest_angle<T> ? from[i] : T(0);
    sin_moderate<T, cosine>(count, moderate, result);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = abs_lane(from[i]) <= largest_angle<T> ? result[i] : libm_sin(from[i], cosine);
    }
  }
}

template <class T>
inline constexpr MathLoops<T> math_table = {
    exp_array,     map_array<T, Expm1Of>, map_array<T, LogOf>, map_array<T, Log1pOf>, tanh_array,
    sigmoid_array, sin_array<T, false>,   sin_array<T, true>,  map_array<T, ErfOf>,
};
template <class T>
struct TableOf<MathLoops<T>> {
  static constexpr const MathLoops<T>& value = math_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
