#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Loops over x[rows, channels] with one parameter per channel: bias and batch normalisation. Narrow rows are taken
/// several at a time, as one long row with the parameters repeated.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

inline constexpr int64_t channel_tile = 512;

/// How [rows, channels] is cut: `groups` groups of `together` rows of at most channel_tile channels.
DFLOW_LANE int64_t rows_together(int64_t rows, int64_t channels) {
  const int64_t fitting = channels <= channel_tile / 2 ? channel_tile / channels : 1;
  return max_of<int64_t>(1, min_of(fitting, rows));
}

template <class C>
DFLOW_LANE void repeat(int64_t channels, int64_t times, const C* DFLOW_RESTRICT from, C* DFLOW_RESTRICT to) {
  for (int64_t t = 0; t < times; ++t) {
    for (int64_t c = 0; c < channels; ++c) to[t * channels + c] = from[c];
  }
}

/// Calls body(offset of the first element, elements, offset of the first channel's parameters), where the parameters
/// are repeated often enough, for pieces of long rows.
template <class Body>
DFLOW_LANE void for_each_long_row(int64_t rows, int64_t channels, int64_t together, const Body& body) {
  int64_t r = 0;
  if (together > 1) {
    for (; r + together <= rows; r += together) body(r * channels, together * channels, int64_t{0});
    if (r < rows) body(r * channels, (rows - r) * channels, int64_t{0});
    return;
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < channels; c += channel_tile) {
      body(r * channels + c, min_of(channel_tile, channels - c), c);
    }
  }
}

/// A parameter array, repeated in its own memory when rows are taken together.
template <class C>
struct Parameters {
  C repeated[channel_tile];
  const C* values;
  DFLOW_LANE Parameters(int64_t channels, int64_t together, const C* from) : values(from) {
    if (together == 1) return;
    repeat(channels, together, from, repeated);
    values = repeated;
  }
};

template <class T>
DFLOW_LANE T wrapping_add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class C>
DFLOW_LANE ComplexParts<C> wrapping_add(ComplexParts<C> a, ComplexParts<C> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
struct Channelwise {
  static DFLOW_LANE auto get(T x) {
    if constexpr (sizeof(compute_t<T>) == sizeof(T)) {
      return x;
    } else {
      return widen(x);
    }
  }
};

template <class T>
void bias_add_rows(int64_t rows, int64_t channels, const T* x, const T* bias, bool relu, T* y) {
  if (channels == 0) return;
  const int64_t together = rows_together(rows, channels);
  const Parameters<T> b(channels, together, bias);
  if (relu) {
    if constexpr (__is_same(compute_t<T>, float) || __is_same(compute_t<T>, double)) {
      using C = compute_t<T>;
      for_each_long_row(
          rows, channels, together, [&](int64_t at, int64_t n, int64_t c) __attribute__((always_inline)) {
            const T* offsets = b.values + c;
            DFLOW_INDEPENDENT
            for (int64_t i = 0; i < n; ++i) {
              const C sum = Channelwise<T>::get(x[at + i]) + Channelwise<T>::get(offsets[i]);
              y[at + i] = Element<T>::narrow(sum < C(0) ? C(0) : sum);
            }
          });
    }
    return;
  }
  for_each_long_row(
      rows, channels, together, [&](int64_t at, int64_t n, int64_t c) __attribute__((always_inline)) {
        const T* offsets = b.values + c;
        DFLOW_INDEPENDENT
        for (int64_t i = 0; i < n; ++i) {
          y[at + i] = Element<T>::narrow(wrapping_add(Channelwise<T>::get(x[at + i]), Channelwise<T>::get(offsets[i])));
        }
      });
}

/// Sums per channel of f(element) over long rows: short chains in the element's precision, folded in double.
template <class C, int sums, class F>
DFLOW_LANE void sum_channels(int64_t rows, int64_t channels, int64_t c0, int64_t count, int64_t together,
                             double* const (&to)[sums], const F& f) {
  constexpr int64_t chain = 64;
  C part[sums][channel_tile];
  double all[sums][channel_tile];
  const int64_t width = together * count;
  for (int s = 0; s < sums; ++s) {
    for (int64_t j = 0; j < width; ++j) all[s][j] = 0;
  }
  const int64_t groups = rows / together;
  for (int64_t begin = 0; begin < groups; begin += chain) {
    const int64_t end = min_of(groups, begin + chain);
    for (int s = 0; s < sums; ++s) {
      for (int64_t j = 0; j < width; ++j) part[s][j] = 0;
    }
    for (int64_t g = begin; g < end; ++g) f(g * together * channels + c0, width, part);
    for (int s = 0; s < sums; ++s) {
      for (int64_t j = 0; j < width; ++j) all[s][j] += static_cast<double>(part[s][j]);
    }
  }
  for (int64_t r = groups * together; r < rows; ++r) {
    for (int s = 0; s < sums; ++s) {
      for (int64_t j = 0; j < count; ++j) part[s][j] = 0;
    }
    f(r * channels + c0, count, part);
    for (int s = 0; s < sums; ++s) {
      for (int64_t j = 0; j < count; ++j) all[s][j] += static_cast<double>(part[s][j]);
    }
  }
  for (int s = 0; s < sums; ++s) {
    for (int64_t j = 0; j < count; ++j) {
      double sum = all[s][j];
      for (int64_t t = 1; t < together; ++t) sum += all[s][t * count + j];
      to[s][c0 + j] = sum;
    }
  }
}

template <class T>
void moments(int64_t rows, int64_t channels, const T* x, double* mean, double* squares) {
  using C = compute_t<T>;
  const int64_t together = rows_together(rows, channels);
  for (int64_t c0 = 0; c0 < channels; c0 += channel_tile) {
    const int64_t count = min_of(channel_tile, channels - c0);
    double* const sums[1] = {mean};
    sum_channels<C>(
        rows, channels, c0, count, together,
        sums, [&](int64_t at, int64_t n, C(&part)[1][channel_tile]) __attribute__((always_inline)) {
          for (int64_t i = 0; i < n; ++i) part[0][i] += Channelwise<T>::get(x[at + i]);
        });
    C center[channel_tile];
    for (int64_t j = 0; j < count; ++j) {
      mean[c0 + j] /= static_cast<double>(rows);
      center[j] = static_cast<C>(mean[c0 + j]);
    }
    const Parameters<C> around(count, together, center);
    double* const distances[1] = {squares};
    sum_channels<C>(
        rows, channels, c0, count, together,
        distances, [&](int64_t at, int64_t n, C(&part)[1][channel_tile]) __attribute__((always_inline)) {
          for (int64_t i = 0; i < n; ++i) {
            const C d = Channelwise<T>::get(x[at + i]) - around.values[i];
            part[0][i] += d * d;
          }
        });
    // The centre was rounded.
    for (int64_t j = 0; j < count; ++j) {
      const double off = mean[c0 + j] - static_cast<double>(center[j]);
      squares[c0 + j] -= static_cast<double>(rows) * off * off;
    }
  }
}

template <class T>
void normalize(int64_t rows, int64_t channels, const T* x, const compute_t<T>* mean, const compute_t<T>* factor,
               const compute_t<T>* offset, T* y) {
  using C = compute_t<T>;
  const int64_t together = rows_together(rows, channels);
  const Parameters<C> m(channels, together, mean), f(channels, together, factor), o(channels, together, offset);
  for_each_long_row(
      rows, channels, together, [&](int64_t at, int64_t n, int64_t c) __attribute__((always_inline)) {
        const C* center = m.values + c;
        const C* scale = f.values + c;
        const C* shift = o.values + c;
        DFLOW_INDEPENDENT
        for (int64_t i = 0; i < n; ++i) {
          y[at + i] = Element<T>::narrow((Channelwise<T>::get(x[at + i]) - center[i]) * scale[i] + shift[i]);
        }
      });
}

template <class T>
void grad_sums(int64_t rows, int64_t channels, const T* x, const T* grad_y, const compute_t<T>* mean, double* plain,
               double* centered) {
  using C = compute_t<T>;
  const int64_t together = rows_together(rows, channels);
  for (int64_t c0 = 0; c0 < channels; c0 += channel_tile) {
    const int64_t count = min_of(channel_tile, channels - c0);
    const Parameters<C> m(count, together, mean + c0);
    double* const sums[2] = {plain, centered};
    sum_channels<C>(
        rows, channels, c0, count, together,
        sums, [&](int64_t at, int64_t n, C(&part)[2][channel_tile]) __attribute__((always_inline)) {
          for (int64_t i = 0; i < n; ++i) {
            const C dy = Channelwise<T>::get(grad_y[at + i]);
            part[0][i] += dy;
            part[1][i] += dy * (Channelwise<T>::get(x[at + i]) - m.values[i]);
          }
        });
  }
}

template <class T>
void grad_input(int64_t rows, int64_t channels, const T* x, const T* grad_y, const compute_t<T>* mean,
                const compute_t<T>* factor, const compute_t<T>* shift, const compute_t<T>* slope, T* grad_x) {
  using C = compute_t<T>;
  const int64_t together = rows_together(rows, channels);
  const Parameters<C> m(channels, together, mean), f(channels, together, factor), s(channels, together, shift),
      k(channels, together, slope);
  for_each_long_row(
      rows, channels, together, [&](int64_t at, int64_t n, int64_t c) __attribute__((always_inline)) {
        const C* center = m.values + c;
        const C* scale = f.values + c;
        const C* less = s.values + c;
        const C* along = k.values + c;
        DFLOW_INDEPENDENT
        for (int64_t i = 0; i < n; ++i) {
          const C distance = Channelwise<T>::get(x[at + i]) - center[i];
          grad_x[at + i] =
              Element<T>::narrow(((Channelwise<T>::get(grad_y[at + i]) - less[i]) - distance * along[i]) * scale[i]);
        }
      });
}

template <class T>
inline constexpr BiasLoops<T> bias_table = {bias_add_rows<T>};
template <class T>
struct TableOf<BiasLoops<T>> {
  static constexpr const BiasLoops<T>& value = bias_table<T>;
};
template <class T>
inline constexpr BatchNormLoops<T> batch_norm_table = {moments<T>, normalize<T>, grad_sums<T>, grad_input<T>};
template <class T>
struct TableOf<BatchNormLoops<T>> {
  static constexpr const BatchNormLoops<T>& value = batch_norm_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
