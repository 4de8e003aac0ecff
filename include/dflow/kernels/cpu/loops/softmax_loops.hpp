#pragma once

#include <dflow/kernels/cpu/loops/math_lanes.hpp>
#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

/// Softmax and its relatives, one row at a time in tiles that are widened and padded to whole vectors. A row is read
/// from memory once where it fits the cache.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

inline constexpr int64_t softmax_tile = 512;

/// Elements of a tile, padded with `padding` to a multiple of 64 bytes; returns how many there are then.
template <class T, class C>
DFLOW_LANE int64_t load_tile(int64_t n, const T* from, C padding, C* DFLOW_RESTRICT to) {
  constexpr int64_t whole = 64 / static_cast<int64_t>(sizeof(C));
  const int64_t padded = (n + whole - 1) / whole * whole;
  for (int64_t i = 0; i < n; ++i) to[i] = widened<C>(from[i]);
  for (int64_t i = n; i < padded; ++i) to[i] = padding;
  return padded;
}

template <class T, class C>
DFLOW_LANE void store_tile(int64_t n, const C* DFLOW_RESTRICT from, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = Element<T>::narrow(from[i]);
}

/// The larger number; a NaN may get lost, since the exponentials bring it back.
struct LargerNumber : Maximum {
  template <class V>
  static DFLOW_LANE V combine(V best, V x) {
    return x > best ? x : best;
  }
};

template <class T>
DFLOW_LANE compute_t<T> largest(int64_t n, const T* x) {
  using C = compute_t<T>;
  C best = -infinity<C>;
  if constexpr (sizeof(C) == sizeof(T)) {
    return reduce_block<LargerNumber, C>(n, x);
  } else {
    alignas(64) C tile[softmax_tile];
    for (int64_t begin = 0; begin < n; begin += softmax_tile) {
      const int64_t padded = load_tile(min_of(softmax_tile, n - begin), x + begin, -infinity<C>, tile);
      best = LargerNumber::combine(best, reduce_block<LargerNumber, C>(padded, tile));
    }
    return best;
  }
}

/// Sum of exp(x - shift); `y`, if there is one, gets the terms.
template <class T>
DFLOW_LANE double sum_of_exponentials(int64_t n, const T* x, compute_t<T> shift, T* y) {
  using C = compute_t<T>;
  alignas(64) C tile[softmax_tile];
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    if constexpr (sizeof(C) == sizeof(T)) {
      if (count >= 64) {
        T* to = y != nullptr ? y + begin : tile;
        DFLOW_INDEPENDENT
        for (int64_t i = 0; i < count; ++i) to[i] = exp_nonpositive(x[begin + i] - shift);
        sum += static_cast<double>(reduce_block<Sum, C>(count, to));
        continue;
      }
    }
    const int64_t padded = load_tile(count, x + begin, -infinity<C>, tile);
    for (int64_t i = 0; i < padded; ++i) tile[i] = exp_nonpositive(tile[i] - shift);
    sum += static_cast<double>(reduce_block<Sum, C>(count, tile));
    if (y != nullptr) store_tile(count, tile, y + begin);
  }
  return sum;
}

/// y = f(x) for single numbers of the compute type.
template <class T, class F>
DFLOW_LANE void map_row(int64_t n, const T* x, T* y, F f) {
  using C = compute_t<T>;
  alignas(64) C tile[softmax_tile];
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    const int64_t padded = load_tile(count, x + begin, C(0), tile);
    for (int64_t i = 0; i < padded; ++i) tile[i] = f(tile[i]);
    store_tile(count, tile, y + begin);
  }
}

template <class T>
void softmax_row(int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  if (n == 0) return;
  const C shift = largest(n, x);
  if constexpr (sizeof(C) == sizeof(T)) {
    const C factor = static_cast<C>(1.0 / sum_of_exponentials(n, x, shift, y));
    for (int64_t i = 0; i < n; ++i) y[i] *= factor;
  } else {
    const C factor = static_cast<C>(1.0 / sum_of_exponentials(n, x, shift, static_cast<T*>(nullptr)));
    map_row(
        n, x, y, [=](C v) __attribute__((always_inline)) { return exp_nonpositive(v - shift) * factor; });
  }
}

/// Sum minus the shift's share: log of a double by way of the lanes' function.
DFLOW_LANE double log_of_sum(double sum) { return log_lane(sum); }

template <class T>
void log_softmax_row(int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  if (n == 0) return;
  const C shift = largest(n, x);
  const C log_sum = static_cast<C>(log_of_sum(sum_of_exponentials(n, x, shift, static_cast<T*>(nullptr))));
  map_row(
      n, x, y, [=](C v) __attribute__((always_inline)) { return (v - shift) - log_sum; });
}

template <class T>
void softmax_backward_row(int64_t n, const T* y, const T* grad_y, T* grad_x) {
  using C = compute_t<T>;
  alignas(64) C a[softmax_tile], b[softmax_tile];
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    load_tile(count, y + begin, C(0), a);
    const int64_t padded = load_tile(count, grad_y + begin, C(0), b);
    for (int64_t i = 0; i < padded; ++i) a[i] *= b[i];
    sum += static_cast<double>(reduce_block<Sum, C>(count, a));
  }
  const C dot = static_cast<C>(sum);
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    load_tile(count, y + begin, C(0), a);
    const int64_t padded = load_tile(count, grad_y + begin, C(0), b);
    for (int64_t i = 0; i < padded; ++i) a[i] *= b[i] - dot;
    store_tile(count, a, grad_x + begin);
  }
}

template <class T>
void log_softmax_backward_row(int64_t n, const T* y, const T* grad_y, T* grad_x) {
  using C = compute_t<T>;
  double total;
  reduce_run<Sum, T, double, C>(n, grad_y, &total);
  const C sum = static_cast<C>(total);
  alignas(64) C a[softmax_tile], b[softmax_tile];
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    load_tile(count, y + begin, C(0), a);
    const int64_t padded = load_tile(count, grad_y + begin, C(0), b);
    for (int64_t i = 0; i < padded; ++i) a[i] = b[i] - exp_lane(a[i]) * sum;
    store_tile(count, a, grad_x + begin);
  }
}

template <class T>
void cross_entropy_row(int64_t n, const T* x, const T* labels, T* loss, T* backprop) {
  using C = compute_t<T>;
  const C shift = largest(n, x);
  alignas(64) C a[softmax_tile], b[softmax_tile], e[softmax_tile];
  double sum = 0, label_sum = 0, weighted = 0;
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    load_tile(count, x + begin, -infinity<C>, a);
    const int64_t padded = load_tile(count, labels + begin, C(0), b);
    for (int64_t i = 0; i < padded; ++i) e[i] = exp_nonpositive(a[i] - shift);
    sum += static_cast<double>(reduce_block<Sum, C>(count, e));
    if constexpr (sizeof(C) == sizeof(T)) {
      if (backprop != nullptr && backprop != x && backprop != labels) store_tile(count, e, backprop + begin);
    }
    if (loss == nullptr) continue;
    label_sum += static_cast<double>(reduce_block<Sum, C>(count, b));
    // A class of no weight adds nothing, even where its logit is infinite.
    for (int64_t i = 0; i < padded; ++i) a[i] = b[i] == C(0) ? C(0) : b[i] * (a[i] - shift);
    weighted += static_cast<double>(reduce_block<Sum, C>(count, a));
  }
  if (loss != nullptr) *loss = Element<T>::narrow(static_cast<C>(label_sum * log_of_sum(sum) - weighted));
  if (backprop == nullptr) return;
  const C factor = static_cast<C>(1.0 / sum);
  if constexpr (sizeof(C) == sizeof(T)) {
    if (backprop != x && backprop != labels) {
      for (int64_t i = 0; i < n; ++i) backprop[i] = backprop[i] * factor - labels[i];
      return;
    }
  }
  for (int64_t begin = 0; begin < n; begin += softmax_tile) {
    const int64_t count = min_of(softmax_tile, n - begin);
    load_tile(count, x + begin, -infinity<C>, a);
    const int64_t padded = load_tile(count, labels + begin, C(0), b);
    for (int64_t i = 0; i < padded; ++i) a[i] = exp_nonpositive(a[i] - shift) * factor - b[i];
    store_tile(count, a, backprop + begin);
  }
}

template <class T>
void sparse_cross_entropy_row(int64_t n, const T* x, int64_t label, T* loss, T* backprop) {
  using C = compute_t<T>;
  if (label < 0 || label >= n) {
    const T nan = Element<T>::narrow(not_a_number<C>);
    if (loss != nullptr) *loss = nan;
    for (int64_t i = 0; backprop != nullptr && i < n; ++i) backprop[i] = nan;
    return;
  }
  const C shift = largest(n, x);
  const C at_label = widened<C>(x[label]) - shift;
  constexpr bool in_place = sizeof(C) == sizeof(T);
  const double sum = sum_of_exponentials(n, x, shift, in_place ? backprop : static_cast<T*>(nullptr));
  if (loss != nullptr) *loss = Element<T>::narrow(static_cast<C>(log_of_sum(sum) - static_cast<double>(at_label)));
  if (backprop == nullptr) return;
  const C factor = static_cast<C>(1.0 / sum);
  const T gradient_of_label = Element<T>::narrow(static_cast<C>(exp_nonpositive(at_label) * factor) - C(1));
  if constexpr (in_place) {
    for (int64_t i = 0; i < n; ++i) backprop[i] *= factor;
  } else {
    map_row(
        n, x, backprop, [=](C v) __attribute__((always_inline)) { return exp_nonpositive(v - shift) * factor; });
  }
  backprop[label] = gradient_of_label;
}

template <class T>
inline constexpr SoftmaxLoops<T> softmax_table = {
    softmax_row<T>,
    log_softmax_row<T>,
    softmax_backward_row<T>,
    log_softmax_backward_row<T>,
};
template <class T>
struct TableOf<SoftmaxLoops<T>> {
  static constexpr const SoftmaxLoops<T>& value = softmax_table<T>;
};

template <class T>
inline constexpr CrossEntropyLoops<T> cross_entropy_table = {cross_entropy_row<T>, sparse_cross_entropy_row<T>};
template <class T>
struct TableOf<CrossEntropyLoops<T>> {
  static constexpr const CrossEntropyLoops<T>& value = cross_entropy_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
