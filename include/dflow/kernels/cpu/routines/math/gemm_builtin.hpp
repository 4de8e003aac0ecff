#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>

#include <algorithm>
#include <cassert>

namespace dflow::cpu {

/// A product with its operands in place: element (i, p) of a is at i * a_row + p * a_depth, element (p, j) of b at p *
/// b_depth + j * b_column.
template <class T>
struct Product {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_depth;
  const T* b;
  std::int64_t b_depth, b_column;
  T* c;
  std::int64_t ldc;
  Epilogue<T> epilogue;

  [[nodiscard]] double cost_ns() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 24.0;
  }
  /// A part of the result: some rows or columns.
  [[nodiscard]] Product rows(std::int64_t first, std::int64_t count) const {
    Product part = *this;
    part.m = count;
    part.a += first * a_row;
    part.c += first * ldc;
    return part;
  }
  [[nodiscard]] Product columns(std::int64_t first, std::int64_t count) const {
    Product part = *this;
    part.n = count;
    part.b += first * b_column;
    part.c += first;
    if (epilogue.bias != nullptr) part.epilogue.bias += first;
    return part;
  }
  /// The product of some of the inner positions.
  [[nodiscard]] Product depths(std::int64_t first, std::int64_t count) const {
    Product part = *this;
    part.k = count;
    part.a += first * a_depth;
    part.b += first * b_depth;
    return part;
  }
  [[nodiscard]] GemmStore<T> store(std::int64_t column, bool first, bool last) const {
    return {epilogue.accumulate || !first, last && epilogue.bias != nullptr ? epilogue.bias + column : nullptr,
            last && epilogue.relu};
  }
};

constexpr std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

template <class T>
Product<T> make_product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                        const T* b, T* c, const Epilogue<T>& epilogue) {
  // A single column is a single row of the transposed product, which reads the large operand in order.
  if (n == 1 && m > 1) {
    assert(epilogue.bias == nullptr);
    return {1, m, k, b, k, 1, a, transpose_a ? m : 1, transpose_a ? 1 : k, c, m, epilogue};
  }
  return {m, n, k,       a, transpose_a ? 1 : k, transpose_a ? m : 1, b, transpose_b ? 1 : n, transpose_b ? k : 1,
          c, n, epilogue};
}

/// No packing: few rows, or all of it small. b's rows are contiguous.
template <class T>
void gemm_unpacked(ThreadPool& pool, const GemmLoops<T>& loops, const Product<T>& p) {
  if (p.m <= 2 * loops.rows) {
    pool.parallel_for(
        p.n, p.cost_ns() / static_cast<double>(p.n),
        [&](std::int64_t begin, std::int64_t end) {
          loops.direct(p.m, end - begin, p.k, p.a, p.a_row, p.a_depth, p.b + begin, p.b_depth, p.c + begin, p.ldc,
                       p.store(begin, true, true));
        },
        8 * loops.columns);
    return;
  }
  pool.parallel_for(
      p.m, p.cost_ns() / static_cast<double>(p.m),
      [&](std::int64_t begin, std::int64_t end) {
        loops.direct(end - begin, p.n, p.k, p.a + begin * p.a_row, p.a_row, p.a_depth, p.b, p.b_depth,
                     p.c + begin * p.ldc, p.ldc, p.store(0, true, true));
      },
      loops.rows);
}

/// Few rows and a transposed b: dot products, which read b once and in order.
template <class T>
void gemm_by_dots(ThreadPool& pool, const GemmLoops<T>& loops, const Product<T>& p) {
  pool.parallel_for(p.n, p.cost_ns() * 3 / static_cast<double>(p.n), [&](std::int64_t begin, std::int64_t end) {
    loops.dots(p.m, end - begin, p.k, p.a, p.a_row, p.b + begin * p.b_column, p.b_column, p.c + begin, p.ldc,
               p.store(begin, true, true));
  });
}

/// For small products with a transposed b: b is packed into the stack, a is read in place.
inline constexpr std::size_t small_packed_bytes = 16384;
template <class T>
void gemm_small_packed(const GemmLoops<T>& loops, const Product<T>& p) {
  alignas(64) T packed[small_packed_bytes / sizeof(T)];
  loops.pack_b(p.k, p.n, p.b, p.b_depth, p.b_column, packed);
  for (std::int64_t j = 0; j < p.n; j += loops.columns) {
    loops.direct(p.m, std::min(loops.columns, p.n - j), p.k, p.a, p.a_row, p.a_depth, packed + j * p.k, loops.columns,
                 p.c + j, p.ldc, p.store(j, true, true));
  }
}

/// One panel of b, packed, against all of a: columns [column, column + columns), inner positions [depth_begin,
/// depth_end).
template <class T>
struct Panel {
  const Product<T>& product;
  const GemmLoops<T>& loops;
  std::int64_t column, columns, depth_begin, depth_end;
  std::int64_t block_depth;   ///< of a packed block
  std::int64_t block_height;  ///< rows of a packed block of a
  std::int64_t block_width;   ///< columns of b per packed block of a
  T* packed;

  [[nodiscard]] std::int64_t padded_columns() const { return round_up(columns, loops.columns); }
  [[nodiscard]] T* packed_block(std::int64_t depth) const { return packed + (depth - depth_begin) * padded_columns(); }

  void pack_strips(std::int64_t begin, std::int64_t end) const {
    const std::int64_t first = begin * loops.columns;
    const std::int64_t count = std::min(end * loops.columns, columns) - first;
    for (std::int64_t d = depth_begin; d < depth_end; d += block_depth) {
      const std::int64_t depth = std::min(block_depth, depth_end - d);
      loops.pack_b(depth, count, product.b + d * product.b_depth + (column + first) * product.b_column, product.b_depth,
                   product.b_column, packed_block(d) + first * depth);
    }
  }

  [[nodiscard]] std::int64_t column_blocks() const { return (columns + block_width - 1) / block_width; }
  [[nodiscard]] std::int64_t blocks() const { return (product.m + block_height - 1) / block_height * column_blocks(); }

  void multiply_block(std::int64_t block, T* packed_a) const {
    const std::int64_t row = block / column_blocks() * block_height;
    const std::int64_t first = block % column_blocks() * block_width;
    const std::int64_t rows = std::min(block_height, product.m - row);
    const std::int64_t count = std::min(block_width, columns - first);
    for (std::int64_t d = depth_begin; d < depth_end; d += block_depth) {
      const std::int64_t depth = std::min(block_depth, depth_end - d);
      loops.pack_a(rows, depth, product.a + row * product.a_row + d * product.a_depth, product.a_row, product.a_depth,
                   packed_a);
      loops.packed(rows, count, depth, packed_a, packed_block(d) + first * depth,
                   product.c + row * product.ldc + column + first, product.ldc,
                   product.store(column + first, d == 0, d + depth == product.k));
    }
  }
};

/// Both operands packed. b is packed once, by all threads; then threads take blocks of the result.
template <class T>
void gemm_packed(ThreadPool& pool, const GemmLoops<T>& loops, const Product<T>& p, KernelCache* cache) {
  const std::int64_t threads = pool.num_threads();
  // A panel that few rows use is better read from the cache that it was packed into.
  const bool is_flat = p.m <= 2 * loops.height;
  const std::int64_t panel_bytes = is_flat ? threads * (std::int64_t{512} << 10) : std::int64_t{8} << 20;
  const std::int64_t panel_elements = panel_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t depth_blocks = (p.k + loops.depth - 1) / loops.depth;
  const std::int64_t block_depth = (p.k + depth_blocks - 1) / depth_blocks;
  const std::int64_t padded_n = round_up(p.n, loops.columns);
  const std::int64_t panel_columns =
      std::min(padded_n, std::max(loops.columns, panel_elements / block_depth / loops.columns * loops.columns));
  const std::int64_t panel_depth =
      std::min(p.k, std::max<std::int64_t>(1, panel_elements / panel_columns / block_depth) * block_depth);

  // Enough blocks for the threads to share evenly, of rows first: a is packed again for each block of columns.
  std::int64_t block_height = std::min(loops.height, round_up(p.m, loops.rows));
  std::int64_t block_width = panel_columns;
  if (threads > 1) {
    const std::int64_t wanted = 4 * threads;
    block_height = std::clamp(round_up((p.m + wanted - 1) / wanted, loops.rows),
                              std::min(block_height, round_up(48, loops.rows)), block_height);
    const std::int64_t row_blocks = (p.m + block_height - 1) / block_height;
    if (row_blocks < wanted) {
      const std::int64_t column_blocks = (wanted + row_blocks - 1) / row_blocks;
      block_width = std::clamp(round_up((panel_columns + column_blocks - 1) / column_blocks, loops.columns),
                               std::min(panel_columns, round_up(128, loops.columns)), panel_columns);
    }
  }

  const Scratch packed_b(cache, static_cast<std::size_t>(panel_columns * panel_depth) * sizeof(T));
  for (std::int64_t column = 0; column < p.n; column += panel_columns) {
    const std::int64_t columns = std::min(panel_columns, p.n - column);
    for (std::int64_t depth = 0; depth < p.k; depth += panel_depth) {
      const Panel<T> panel{
          p,           loops,        column,      columns,         depth, std::min(p.k, depth + panel_depth),
          block_depth, block_height, block_width, packed_b.as<T>()};
      const std::int64_t panel_k = panel.depth_end - depth;
      pool.parallel_for(round_up(columns, loops.columns) / loops.columns,
                        0.3 * static_cast<double>(panel_k * loops.columns),
                        [&](std::int64_t begin, std::int64_t end) { panel.pack_strips(begin, end); });
      pool.parallel_for(panel.blocks(), static_cast<double>(block_height * panel.block_width * panel_k) / 24.0,
                        [&](std::int64_t begin, std::int64_t end) {
                          const Scratch packed_a(cache,
                                                 static_cast<std::size_t>(block_height * block_depth) * sizeof(T));
                          for (std::int64_t block = begin; block < end; ++block)
                            panel.multiply_block(block, packed_a.as<T>());
                        });
    }
  }
}

/// bias and relu on rows of c.
template <class T>
void finish_rows(std::int64_t rows, std::int64_t columns, T* c, std::int64_t ldc, const Epilogue<T>& epilogue,
                 const CpuOptions& options) {
  const bool relu = epilogue.relu;
  if (epilogue.bias != nullptr) {
    const auto& add = loops<BiasLoops<T>>(options.max_level).add;
    if (ldc == columns) return add(rows, columns, c, epilogue.bias, relu, c);
    for (std::int64_t i = 0; i < rows; ++i) add(1, columns, c + i * ldc, epilogue.bias, relu, c + i * ldc);
  } else if (relu) {
    for (std::int64_t i = 0; i < rows; ++i) {
      T* row = c + i * ldc;
      for (std::int64_t j = 0; j < columns; ++j) row[j] = row[j] < T(0) ? T(0) : row[j];
    }
  }
}

/// Calls `multiply` with the product of dense operands. A single column, which that takes for a row of the transposed
/// product, gets its one bias afterwards.
template <class T, class Multiply>
void multiply_as_lies(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                      const T* b, T* c, const Epilogue<T>& epilogue, const CpuOptions& options,
                      const Multiply& multiply) {
  const bool has_one_bias = n == 1 && m > 1 && epilogue.bias != nullptr;
  const Epilogue<T> now = has_one_bias ? Epilogue<T>{epilogue.accumulate} : epilogue;
  multiply(make_product(transpose_a, transpose_b, m, n, k, a, b, c, now));
  if (has_one_bias) finish_rows(m, n, c, n, epilogue, options);
}

/// Products that one accumulator sums.
inline constexpr std::int64_t longest_chain = 4096;

/// c = relu(beta c + a b + bias) of a product with an inner dimension that is longer than one accumulator should sum.
/// The dimension is halved down to `longest`, so that the rounding error grows with the logarithm of the number of
/// parts (Higham 1993, "The accuracy of floating point summation"). `multiply` does a part.
template <class T, class Multiply>
void multiply_in_halves(ThreadPool& pool, const Product<T>& p, std::int64_t longest, const CpuOptions& options,
                        const Multiply& multiply) {
  if (p.k <= longest) return multiply(p);
  const std::int64_t parts = (p.k + longest - 1) / longest;
  const std::int64_t first = (parts + 1) / 2 * longest;
  Product<T> low = p.depths(0, first);
  low.epilogue = {p.epilogue.accumulate, nullptr, false};
  multiply_in_halves(pool, low, longest, options, multiply);
  const Scratch scratch(options.cache, static_cast<std::size_t>(p.m * p.n) * sizeof(T));
  Product<T> high = p.depths(first, p.k - first);
  high.c = scratch.as<T>();
  high.ldc = p.n;
  high.epilogue = {};
  multiply_in_halves(pool, high, longest, options, multiply);
  pool.parallel_for(p.m, static_cast<double>(p.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* to = p.c + i * p.ldc;
      const T* from = high.c + i * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) to[j] += from[j];
      finish_rows(1, p.n, to, p.ldc, p.epilogue, options);
    }
  });
}

/// Whether a product is dot products, each of them in many accumulators.
template <class T>
bool is_dots(const Product<T>& p) {
  return p.b_column != 1 && p.m <= 2 && p.a_depth == 1 && p.k >= 16;
}

/// One chain of multiply-adds for each element of c, or several in dot products.
template <class T>
void gemm_chain(ThreadPool& pool, const Product<T>& p, const CpuOptions& options) {
  const GemmLoops<T>& table = loops<GemmLoops<T>>(options.max_level);
  if (p.k == 0) {
    // Nothing of a and b is read, and both may be null; a null pointer takes no offsets.
    Product<T> sums_of_nothing = p;
    sums_of_nothing.a = sums_of_nothing.b = p.c;
    sums_of_nothing.a_row = sums_of_nothing.a_depth = sums_of_nothing.b_depth = 0;
    return gemm_unpacked(pool, table, sums_of_nothing);
  }
  if (p.b_column == 1) {
    const bool small = p.n * p.k * static_cast<std::int64_t>(sizeof(T)) <= 65536 && p.m <= 1024;
    if (p.m <= 2 * table.rows || small) return gemm_unpacked(pool, table, p);
  } else {
    if (is_dots(p)) return gemm_by_dots(pool, table, p);
    const std::int64_t packed_bytes = round_up(p.n, table.columns) * p.k * static_cast<std::int64_t>(sizeof(T));
    if (packed_bytes <= static_cast<std::int64_t>(small_packed_bytes) && p.cost_ns() < pool.min_split_ns()) {
      return gemm_small_packed(table, p);
    }
  }
  gemm_packed(pool, table, p, options.cache);
}

template <class T>
void gemm_builtin(ThreadPool& pool, const Product<T>& p, const CpuOptions& options) {
  const std::int64_t longest = is_dots(p) ? 32 * longest_chain : longest_chain;
  multiply_in_halves(pool, p, longest, options, [&](const Product<T>& part) { gemm_chain(pool, part, options); });
}

}  // namespace dflow::cpu
