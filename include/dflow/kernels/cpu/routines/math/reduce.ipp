#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace dflow::cpu {

/// Elements that one total covers on a long axis, and columns of one task. Functions of the shape alone, so that the
/// bits do not depend on the number of threads.
inline constexpr std::int64_t reduce_chunk = 65536;
inline constexpr std::int64_t reduce_columns_tile = 1024;

template <class L, class Total>
void reduce_runs(ThreadPool& pool, const Reduction<L, Total>& reduction, const ReduceShape& shape, const L* x, L* y,
                 double divisor, const CpuOptions& options) {
  const std::int64_t chunks = std::max<std::int64_t>(1, (shape.reduce + reduce_chunk - 1) / reduce_chunk);
  const double element_ns = 0.08 * static_cast<double>(sizeof(L));
  if (chunks == 1) {
    pool.parallel_for(shape.outer, 4 + element_ns * static_cast<double>(shape.reduce),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t o = begin; o < end; ++o) {
                          Total total;
                          reduction.run(shape.reduce, x + o * shape.reduce, &total);
                          reduction.finish(1, 1, &total, divisor, y + o);
                        }
                      });
    return;
  }
  const Scratch totals(options.cache, static_cast<std::size_t>(shape.outer * chunks) * sizeof(Total));
  pool.parallel_for(shape.outer * chunks, element_ns * static_cast<double>(reduce_chunk),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t task = begin; task < end; ++task) {
                        const std::int64_t first = task % chunks * reduce_chunk;
                        reduction.run(std::min(reduce_chunk, shape.reduce - first),
                                      x + task / chunks * shape.reduce + first, totals.as<Total>() + task);
                      }
                    });
  for (std::int64_t o = 0; o < shape.outer; ++o) {
    reduction.finish(chunks, 1, totals.as<Total>() + o * chunks, divisor, y + o);
  }
}

template <class L, class Total>
void reduce_columns(ThreadPool& pool, const Reduction<L, Total>& reduction, const ReduceShape& shape, const L* x, L* y,
                    double divisor, const CpuOptions& options) {
  const std::int64_t tile = std::min(shape.inner, reduce_columns_tile);
  const std::int64_t tiles = (shape.inner + tile - 1) / tile;
  const std::int64_t chunk_rows = std::max<std::int64_t>(64, 2 * reduce_chunk / tile);
  const std::int64_t chunks = std::max<std::int64_t>(1, (shape.reduce + chunk_rows - 1) / chunk_rows);
  const double element_ns = 0.08 * static_cast<double>(sizeof(L));
  const Scratch partial(options.cache,
                        chunks == 1 ? 0 : static_cast<std::size_t>(shape.outer * chunks * shape.inner) * sizeof(Total));
  pool.parallel_for(shape.outer * chunks * tiles,
                    20 + element_ns * static_cast<double>(tile * std::min(chunk_rows, shape.reduce)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t task = begin; task < end; ++task) {
                        const std::int64_t column = task % tiles * tile;
                        const std::int64_t columns = std::min(tile, shape.inner - column);
                        const std::int64_t chunk = task / tiles % chunks;
                        const std::int64_t o = task / tiles / chunks;
                        const std::int64_t rows = std::min(chunk_rows, shape.reduce - chunk * chunk_rows);
                        const L* from = x + (o * shape.reduce + chunk * chunk_rows) * shape.inner + column;
                        if (chunks > 1) {
                          reduction.columns(rows, columns, shape.inner, from,
                                            partial.as<Total>() + (o * chunks + chunk) * shape.inner + column);
                        } else {
                          Total totals[reduce_columns_tile];
                          reduction.columns(rows, columns, shape.inner, from, totals);
                          reduction.finish(1, columns, totals, divisor, y + o * shape.inner + column);
                        }
                      }
                    });
  if (chunks == 1) return;
  for (std::int64_t o = 0; o < shape.outer; ++o) {
    reduction.finish(chunks, shape.inner, partial.as<Total>() + o * chunks * shape.inner, divisor, y + o * shape.inner);
  }
}

template <class L, class Total>
void reduce(ThreadPool& pool, const Reduction<L, Total>& reduction, const ReduceShape& shape, const L* x, L* y,
            double divisor, const CpuOptions& options) {
  if (shape.outer <= 0 || shape.inner <= 0) return;
  if (shape.inner == 1) return reduce_runs(pool, reduction, shape, x, y, divisor, options);
  reduce_columns(pool, reduction, shape, x, y, divisor, options);
}

template <class T>
void reduce_sum(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options) {
  reduce(pool, loops<SumLoops<wrapping_loop_t<T>>>(options.max_level).sum, shape, as_wrapping_loop(x),
         as_wrapping_loop(y), 1.0, options);
}

template <class T>
void reduce_mean(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options) {
  if constexpr (std::is_integral_v<T>) {
    // With no elements the sum is 0, and so is the mean.
    const std::int64_t count = std::max<std::int64_t>(1, shape.reduce);
    reduce(pool, loops<MeanLoops<T>>(options.max_level).mean, shape, x, y, static_cast<double>(count), options);
  } else {
    reduce(pool, loops<SumLoops<wrapping_loop_t<T>>>(options.max_level).sum, shape, as_wrapping_loop(x),
           as_wrapping_loop(y), static_cast<double>(shape.reduce), options);
  }
}

template <class T>
void reduce_prod(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options) {
  reduce(pool, loops<SumLoops<wrapping_loop_t<T>>>(options.max_level).product, shape, as_wrapping_loop(x),
         as_wrapping_loop(y), 1.0, options);
}

template <class T>
void reduce_max(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options) {
  reduce(pool, loops<OrderLoops<loop_t<T>>>(options.max_level).maximum, shape, as_loop(x), as_loop(y), 1.0, options);
}

template <class T>
void reduce_min(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options) {
  reduce(pool, loops<OrderLoops<loop_t<T>>>(options.max_level).minimum, shape, as_loop(x), as_loop(y), 1.0, options);
}

void reduce_all(ThreadPool& pool, const ReduceShape& shape, const bool* x, bool* y, const CpuOptions& options) {
  static_assert(sizeof(bool) == 1);
  if (shape.reduce == 0) {
    std::fill_n(y, shape.outer * shape.inner, true);
    return;
  }
  reduce_min(pool, shape, reinterpret_cast<const std::uint8_t*>(x), reinterpret_cast<std::uint8_t*>(y), options);
}

void reduce_any(ThreadPool& pool, const ReduceShape& shape, const bool* x, bool* y, const CpuOptions& options) {
  reduce_max(pool, shape, reinterpret_cast<const std::uint8_t*>(x), reinterpret_cast<std::uint8_t*>(y), options);
}

/// `run` finds the position in a run, `columns` finds positions in columns.
template <class L, class Index>
void find_positions(ThreadPool& pool, std::int64_t (*run)(std::int64_t, const L*),
                    void (*columns)(std::int64_t, std::int64_t, std::int64_t, const L*, std::int64_t*),
                    const ReduceShape& shape, const L* x, Index* y) {
  if (shape.outer <= 0 || shape.inner <= 0) return;
  const double element_ns = 0.1 * static_cast<double>(sizeof(L));
  if (shape.inner == 1) {
    pool.parallel_for(shape.outer, 10 + element_ns * static_cast<double>(shape.reduce),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t o = begin; o < end; ++o) {
                          y[o] = static_cast<Index>(run(shape.reduce, x + o * shape.reduce));
                        }
                      });
    return;
  }
  constexpr std::int64_t tile = 512;
  const std::int64_t tiles = (shape.inner + tile - 1) / tile;
  pool.parallel_for(
      shape.outer * tiles, 20 + element_ns * static_cast<double>(std::min(tile, shape.inner) * shape.reduce),
      [&](std::int64_t begin, std::int64_t end) {
        std::int64_t positions[tile];
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t o = task / tiles;
          const std::int64_t column = task % tiles * tile;
          const std::int64_t count = std::min(tile, shape.inner - column);
          columns(shape.reduce, count, shape.inner, x + o * shape.reduce * shape.inner + column, positions);
          for (std::int64_t j = 0; j < count; ++j) {
            y[o * shape.inner + column + j] = static_cast<Index>(positions[j]);
          }
        }
      });
}

template <class T, class Index>
void argmax(ThreadPool& pool, const ReduceShape& shape, const T* x, Index* y, const CpuOptions& options) {
  const auto& table = loops<OrderLoops<loop_t<T>>>(options.max_level);
  find_positions(pool, table.argmax, table.argmax_columns, shape, as_loop(x), y);
}

template <class T, class Index>
void argmin(ThreadPool& pool, const ReduceShape& shape, const T* x, Index* y, const CpuOptions& options) {
  const auto& table = loops<OrderLoops<loop_t<T>>>(options.max_level);
  find_positions(pool, table.argmin, table.argmin_columns, shape, as_loop(x), y);
}

template <class T>
T sum_of_squares(ThreadPool& pool, std::int64_t n, const T* x, const CpuOptions& options) {
  T result{};
  reduce(pool, loops<SumLoops<loop_t<T>>>(options.max_level).squares, ReduceShape{1, n, 1}, as_loop(x),
         as_loop(&result), 1.0, options);
  return result;
}

}  // namespace dflow::cpu
