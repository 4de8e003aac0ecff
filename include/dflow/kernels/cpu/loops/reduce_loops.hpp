#pragma once

#include <dflow/kernels/cpu/loops/reduce_ops.hpp>

/// Reductions of runs and of columns. Sums and products run over blocks in several accumulators of the element's
/// precision; the blocks' results are added in a wider type where there is one.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class To, class From>
DFLOW_LANE To to_total(From x) {
  if constexpr (is_complex_parts<To>) {
    using Part = decltype(To::re);
    return {static_cast<Part>(x.re), static_cast<Part>(x.im)};
  } else {
    return static_cast<To>(x);
  }
}

template <class C, class T>
DFLOW_LANE C widened(T x) {
  if constexpr (__is_same(C, T)) {
    return x;
  } else if constexpr (__is_class(T)) {
    return widen(x);
  } else {
    return static_cast<C>(x);
  }
}

inline constexpr int64_t run_block = 4096;

/// One block of at most run_block numbers; the lanes are combined by halves.
template <class Op, class C>
DFLOW_LANE C reduce_block(int64_t n, const C* x) {
  constexpr int width = lanes<C>;
  C result = Op::identity(C{});
  int64_t i = 0;
  if (n >= 4 * width) {
    // Short chains of additions; their sums make another chain.
    constexpr int64_t group = 4 * width;
    constexpr int64_t chain = 16 * group;
    Vec<C> all = splat(Op::identity(C{}));
    for (; i + group <= n;) {
      Vec<C> part[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) part[u] = Op::take(load(x + i + u * width));
      const int64_t end = min_of(n, i + chain);
      for (i += group; i + group <= end; i += group) {
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) part[u] = Op::combine(part[u], Op::take(load(x + i + u * width)));
      }
      all = Op::combine(all, Op::combine(Op::combine(part[0], part[1]), Op::combine(part[2], part[3])));
    }
    C lane[width];
    __builtin_memcpy(lane, &all, sizeof all);
#pragma GCC unroll 8
    for (int half = width / 2; half > 0; half /= 2) {
#pragma GCC unroll 32
      for (int l = 0; l < half; ++l) lane[l] = Op::combine(lane[l], lane[l + half]);
    }
    result = lane[0];
  }
  for (; i < n; ++i) result = Op::combine(result, Op::take(x[i]));
  return result;
}

/// C: the type of a block's result, of the elements' size or wider.
template <class Op, class T, class Total, class C>
void reduce_run(int64_t n, const T* x, Total* total) {
  Total all = Op::identity(Total{});
  for (int64_t begin = 0; begin < n; begin += run_block) {
    const int64_t count = min_of(run_block, n - begin);
    if constexpr (is_complex_parts<T>) {
      for (int64_t i = begin; i < begin + count; ++i) all = Op::combine(all, to_total<Total>(x[i]));
    } else if constexpr (sizeof(C) == sizeof(T)) {
      all = Op::combine(all, static_cast<Total>(reduce_block<Op, C>(count, reinterpret_cast<const C*>(x + begin))));
    } else {
      C wide[run_block];
      for (int64_t i = 0; i < count; ++i) wide[i] = widened<C>(x[begin + i]);
      all = Op::combine(all, static_cast<Total>(reduce_block<Op, C>(count, wide)));
    }
  }
  *total = all;
}

inline constexpr int64_t column_tile = 1024;
inline constexpr int64_t column_block = 64;

/// At most column_tile columns. Narrow rows are taken several at a time, as one long row.
template <class Op, class T, class Total, class C>
void reduce_column_tile(int64_t rows, int64_t columns, int64_t stride, const T* x, Total* DFLOW_RESTRICT totals) {
  C part[column_tile];
  Total all[column_tile];
  const int64_t fitting = columns == stride && columns <= column_tile / 4 ? column_tile / 2 / columns : 1;
  const int64_t together = max_of<int64_t>(1, min_of(fitting, rows / 8));
  const int64_t long_rows = rows / together;
  const int64_t width = together * columns;
  for (int64_t j = 0; j < width; ++j) all[j] = Op::identity(Total{});
  for (int64_t begin = 0; begin < long_rows; begin += column_block) {
    const int64_t end = min_of(long_rows, begin + column_block);
    for (int64_t j = 0; j < width; ++j) part[j] = Op::identity(C{});
    int64_t r = begin;
    for (; r + 4 <= end; r += 4) {
      const T* a = x + r * stride * together;
      const T* b = a + stride * together;
      const T* c = b + stride * together;
      const T* d = c + stride * together;
      for (int64_t j = 0; j < width; ++j) {
        const C ab = Op::combine(Op::take(widened<C>(a[j])), Op::take(widened<C>(b[j])));
        const C cd = Op::combine(Op::take(widened<C>(c[j])), Op::take(widened<C>(d[j])));
        part[j] = Op::combine(part[j], static_cast<C>(Op::combine(ab, cd)));
      }
    }
    for (; r < end; ++r) {
      const T* a = x + r * stride * together;
      for (int64_t j = 0; j < width; ++j) part[j] = Op::combine(part[j], static_cast<C>(Op::take(widened<C>(a[j]))));
    }
    for (int64_t j = 0; j < width; ++j) all[j] = Op::combine(all[j], to_total<Total>(part[j]));
  }
  for (int64_t j = 0; j < columns; ++j) totals[j] = all[j];
  for (int64_t g = 1; g < together; ++g) {
    for (int64_t j = 0; j < columns; ++j) totals[j] = Op::combine(totals[j], all[g * columns + j]);
  }
  for (int64_t r = long_rows * together; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      totals[j] = Op::combine(totals[j], to_total<Total>(static_cast<C>(Op::take(widened<C>(x[r * stride + j])))));
    }
  }
}

template <class Op, class T, class Total, class C>
void reduce_columns(int64_t rows, int64_t columns, int64_t stride, const T* x, Total* totals) {
  for (int64_t j = 0; j < columns; j += column_tile) {
    reduce_column_tile<Op, T, Total, C>(rows, min_of(column_tile, columns - j), stride, x + j, totals + j);
  }
}

template <class Op, class T, class Total>
void finish_columns(int64_t parts, int64_t columns, const Total* totals, double divisor, T* y) {
  for (int64_t j = 0; j < columns; ++j) {
    Total all = totals[j];
    for (int64_t p = 1; p < parts; ++p) all = Op::combine(all, totals[p * columns + j]);
    if constexpr (is_complex_parts<T>) {
      using Part = decltype(T::re);
      y[j] = {static_cast<Part>(all.re / divisor), static_cast<Part>(all.im / divisor)};
    } else if constexpr (__is_same(compute_t<T>, float) || __is_same(compute_t<T>, double)) {
      y[j] = Element<T>::narrow(static_cast<compute_t<T>>(divisor == 1.0 ? all : all / static_cast<Total>(divisor)));
    } else {
      y[j] = static_cast<T>(all);
    }
  }
}

template <class Op, class T>
inline constexpr Reduction<T> reduction = {reduce_run<Op, T, total_t<T>, compute_t<T>>,
                                           reduce_columns<Op, T, total_t<T>, compute_t<T>>,
                                           finish_columns<Op, T, total_t<T>>};

template <class T>
constexpr SumLoops<T> make_sum_loops() {
  if constexpr (is_complex_parts<T>) {
    return {reduction<Sum, T>, reduction<Prod, T>, {}};
  } else {
    return {reduction<Sum, T>, reduction<Prod, T>, reduction<SumOfSquares, T>};
  }
}
template <class T>
inline constexpr SumLoops<T> sum_table = make_sum_loops<T>();
template <class T>
struct TableOf<SumLoops<T>> {
  static constexpr const SumLoops<T>& value = sum_table<T>;
};

template <bool is_signed>
struct QuotientOf {
  using type = int64_t;
};
template <>
struct QuotientOf<false> {
  using type = uint64_t;
};

/// Totals are unsigned, so that they wrap; only the quotient depends on the sign.
template <class T>
void finish_means(int64_t parts, int64_t columns, const uint64_t* totals, double divisor, T* y) {
  using Quotient = typename QuotientOf<Limits<T>::is_signed>::type;
  const auto count = static_cast<Quotient>(divisor);
  for (int64_t j = 0; j < columns; ++j) {
    uint64_t all = totals[j];
    for (int64_t p = 1; p < parts; ++p) all += totals[p * columns + j];
    y[j] = static_cast<T>(static_cast<Quotient>(all) / count);
  }
}

/// The type in which a block is summed. 32 bits hold the sum of run_block elements of 16 bits, and give twice as many
/// lanes.
template <int bytes>
struct BlockSumOf {
  using type = uint64_t;
};
template <>
struct BlockSumOf<2> {
  using type = int32_t;
};
template <>
struct BlockSumOf<1> {
  using type = int32_t;
};

template <class T, class C = typename BlockSumOf<sizeof(T)>::type>
inline constexpr MeanLoops<T> mean_table = {
    {reduce_run<Sum, T, uint64_t, C>, reduce_columns<Sum, T, uint64_t, C>, finish_means<T>}};
template <class T>
struct TableOf<MeanLoops<T>> {
  static constexpr const MeanLoops<T>& value = mean_table<T>;
};

/// Block by block: finds the block's best element, and its position only if the element is better than all before it.
template <class Op, class T>
int64_t find_best(int64_t n, const T* x) {
  using C = compute_t<T>;
  constexpr int width = lanes<C>;
  constexpr int64_t block = 2048;
  C best = Op::worst(C{});
  int64_t position = 0;
  C wide[sizeof(C) == sizeof(T) ? 1 : block];
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = min_of(block, n - begin);
    const C* from;
    if constexpr (sizeof(C) == sizeof(T)) {
      from = x + begin;
    } else {
      for (int64_t i = 0; i < count; ++i) wide[i] = widen(x[begin + i]);
      from = wide;
    }
    Vec<C> part[4];
    for (int u = 0; u < 4; ++u) part[u] = splat(Op::worst(C{}));
    int64_t i = 0;
    for (; i + 4 * width <= count; i += 4 * width) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) part[u] = Op::combine(part[u], load(from + i + u * width));
    }
    const Vec<C> all = Op::combine(Op::combine(part[0], part[1]), Op::combine(part[2], part[3]));
    C here = all[0];
    for (int l = 1; l < width; ++l) here = Op::combine(here, static_cast<C>(all[l]));
    for (; i < count; ++i) here = Op::combine(here, from[i]);
    if (!Op::better(here, best)) continue;
    best = here;
    // Vector code skips whole groups without a better element.
    int64_t at = 0;
    for (; at + 32 <= count; at += 32) {
      unsigned char hit = 0;
      for (int l = 0; l < 32; ++l) hit = static_cast<unsigned char>(hit | (from[at + l] == here ? 1 : 0));
      if (hit != 0) break;
    }
    while (from[at] != here) ++at;
    position = begin + at;
  }
  return position;
}

template <int bytes>
struct PositionOf {
  using type = int32_t;
};
template <>
struct PositionOf<8> {
  using type = int64_t;
};

/// Looks for better elements in eight rows each time it loads and stores the best ones so far. Returns the number of
/// rows it has done: none if `count` is not a multiple of a vector.
template <class Op, class T, class C, class Position>
int64_t find_better_in_rows(int64_t rows, int64_t count, int64_t stride, const T* x, C* best, Position* where) {
  int64_t r = 0;
  if constexpr (sizeof(C) == sizeof(T) && sizeof(C) == sizeof(Position)) {
    constexpr int64_t width = lanes<C>;
    constexpr int64_t together = 8;
    for (; count % width == 0 && r + together <= rows; r += together) {
      const T* row = x + r * stride;
      for (int64_t j = 0; j < count; j += width) {
        Vec<C> top = load(best + j);
        Vec<Position> at = load(where + j);
#pragma GCC unroll 8
        for (int q = 0; q < together; ++q) {
          const Vec<C> value = load(row + q * stride + j);
          const auto better = Op::better(value, top);
          top = better ? value : top;
          at = better ? splat(static_cast<Position>(r + q)) : at;
        }
        store(best + j, top);
        store(where + j, at);
      }
    }
  }
  return r;
}

template <class Op, class T>
void find_best_columns(int64_t rows, int64_t columns, int64_t stride, const T* x, int64_t* y) {
  using C = compute_t<T>;
  using Position = typename PositionOf<sizeof(C)>::type;
  constexpr int64_t tile = 512;
  constexpr int64_t most_rows = int64_t{1} << 30;
  C best[tile];
  Position where[tile];
  for (int64_t j0 = 0; j0 < columns; j0 += tile) {
    const int64_t count = min_of(tile, columns - j0);
    for (int64_t j = 0; j < count; ++j) best[j] = Op::worst(C{});
    for (int64_t j = 0; j < count; ++j) y[j0 + j] = 0;
    for (int64_t r0 = 0; r0 < rows; r0 += most_rows) {
      const int64_t some = min_of(most_rows, rows - r0);
      for (int64_t j = 0; j < count; ++j) where[j] = -1;
      const T* const from = x + r0 * stride + j0;
      for (int64_t r = find_better_in_rows<Op>(some, count, stride, from, best, where); r < some; ++r) {
        const T* row = from + r * stride;
        const Position position = static_cast<Position>(r);
        for (int64_t j = 0; j < count; ++j) {
          const C value = widened<C>(row[j]);
          const bool better = Op::better(value, best[j]);
          best[j] = better ? value : best[j];
          where[j] = better ? position : where[j];
        }
      }
      for (int64_t j = 0; j < count; ++j) y[j0 + j] = where[j] >= 0 ? r0 + where[j] : y[j0 + j];
    }
  }
}

template <class T>
inline constexpr OrderLoops<T> order_table = {
    reduction<Maximum, T>, reduction<Minimum, T>,        find_best<Larger, T>,
    find_best<Smaller, T>, find_best_columns<Larger, T>, find_best_columns<Smaller, T>,
};
template <class T>
struct TableOf<OrderLoops<T>> {
  static constexpr const OrderLoops<T>& value = order_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
