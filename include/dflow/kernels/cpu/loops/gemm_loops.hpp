#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>
#include <dflow/kernels/cpu/loops/shuffles.hpp>

/// Products of float and double after Goto and van de Geijn 2008 ("Anatomy of high-performance matrix
/// multiplication"): operands packed into strips, a register tile of rows x columns, blocks that stay in the caches.
/// Each element of c is one chain of multiply-adds over the inner dimension in ascending order. The blocking does not
/// change it, so its bits depend on neither tile nor thread.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

#if defined(__AVX512F__)
inline constexpr int tile_rows = 12;
#elif defined(__AVX__)
inline constexpr int tile_rows = 6;
#else
inline constexpr int tile_rows = 4;
#endif
inline constexpr int tile_vectors = 2;
template <class T>
inline constexpr int tile_columns = tile_vectors * lanes<T>;

/// The initial values of a register tile.
template <class T, int rows, int vectors>
DFLOW_LANE void start_tile(Vec<T> (&sum)[rows][vectors], const T* c, int64_t ldc, const GemmStore<T>& to) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[r][v] = to.accumulate ? load(c + r * ldc + v * lanes<T>) : Vec<T>{};
  }
}

/// sum += the outer product of a column of a, with rows row_stride apart, and a row of b.
template <class T, int rows, int vectors>
DFLOW_LANE void multiply_step(Vec<T> (&sum)[rows][vectors], const T* DFLOW_RESTRICT a, int64_t row_stride,
                              const T* DFLOW_RESTRICT b) {
  Vec<T> right[vectors];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) right[v] = load(b + v * lanes<T>);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    const Vec<T> left = splat(a[r * row_stride]);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
  }
}

template <class T, int rows, int vectors>
DFLOW_LANE void finish_tile(Vec<T> (&sum)[rows][vectors], T* c, int64_t ldc, const GemmStore<T>& to) {
  constexpr int width = lanes<T>;
  if (to.bias != nullptr) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Vec<T> bias = load(to.bias + v * width);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) sum[r][v] += bias;
    }
  }
  if (to.relu) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = sum[r][v] < Vec<T>{} ? Vec<T>{} : sum[r][v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) store(c + r * ldc + v * width, sum[r][v]);
  }
}

/// c[rows, vectors * lanes] from rows of a and contiguous rows of b.
template <class T, int rows, int vectors>
DFLOW_LANE void multiply_tile(int64_t k, const T* DFLOW_RESTRICT a, int64_t row_stride, int64_t depth_stride,
                              const T* DFLOW_RESTRICT b, int64_t ldb, T* c, int64_t ldc, const GemmStore<T>& to) {
  Vec<T> sum[rows][vectors];
  start_tile(sum, c, ldc, to);
#pragma GCC unroll 1
  for (int64_t p = 0; p < k; ++p) {
    multiply_step(sum, a, row_stride, b);
    a += depth_stride;
    b += ldb;
  }
  finish_tile(sum, c, ldc, to);
}

/// Calls multiply_tile with a run-time number of rows in 1..tile_rows.
template <class T, int vectors, int rows = tile_rows>
DFLOW_LANE void multiply_rows(int64_t m, int64_t k, const T* a, int64_t row_stride, int64_t depth_stride, const T* b,
                              int64_t ldb, T* c, int64_t ldc, const GemmStore<T>& to) {
  if constexpr (rows == 1) {
    multiply_tile<T, 1, vectors>(k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
  } else if (m == rows) {
    multiply_tile<T, rows, vectors>(k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
  } else {
    multiply_rows<T, vectors, rows - 1>(m, k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
  }
}

template <class T, int vectors>
__attribute__((noinline)) void multiply_strip(int64_t m, int64_t k, const T* a, int64_t row_stride,
                                              int64_t depth_stride, const T* b, int64_t ldb, T* c, int64_t ldc,
                                              const GemmStore<T>& to) {
  multiply_rows<T, vectors>(m, k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
}

/// The place of a tile with columns between whole vectors: a copy of it, padded to a full strip.
template <class T>
struct EdgeTile {
  static constexpr int width = tile_columns<T>;

  DFLOW_LANE EdgeTile(int64_t m, int64_t n, const T* c, int64_t ldc, const GemmStore<T>& to) : store(to) {
    if (to.accumulate) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < width; ++j) tile[i * width + j] = j < n ? c[i * ldc + j] : T(0);
      }
    }
    if (to.bias != nullptr) {
      for (int64_t j = 0; j < width; ++j) bias[j] = j < n ? to.bias[j] : T(0);
      store.bias = bias;
    }
  }
  DFLOW_LANE void write(int64_t m, int64_t n, T* c, int64_t ldc) const {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = tile[i * width + j];
    }
  }

  alignas(64) T tile[tile_rows * width];
  alignas(64) T bias[width];
  GemmStore<T> store;
};

template <class T>
__attribute__((noinline)) void multiply_edge(int64_t m, int64_t n, int64_t k, const T* a, int64_t row_stride,
                                             int64_t depth_stride, const T* b, int64_t ldb, T* c, int64_t ldc,
                                             const GemmStore<T>& to) {
  EdgeTile<T> edge(m, n, c, ldc, to);
  if (n <= lanes<T>) {
    multiply_strip<T, 1>(m, k, a, row_stride, depth_stride, b, ldb, edge.tile, edge.width, edge.store);
  } else {
    multiply_strip<T, 2>(m, k, a, row_stride, depth_stride, b, ldb, edge.tile, edge.width, edge.store);
  }
  edge.write(m, n, c, ldc);
}

template <class T>
void gemm_packed(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t ldc, GemmStore<T> to) {
  constexpr int64_t width = tile_columns<T>;
  for (int64_t j = 0; j < n; j += width) {
    GemmStore<T> here = to;
    if (to.bias != nullptr) here.bias = to.bias + j;
    const T* right = b + j * k;
    for (int64_t i = 0; i < m; i += tile_rows) {
      const int64_t rows = min_of<int64_t>(tile_rows, m - i);
      const T* left = a + i * k;
      T* out = c + i * ldc + j;
      if (n - j < width) {
        multiply_edge<T>(rows, n - j, k, left, 1, tile_rows, right, width, out, ldc, here);
      } else if (rows == tile_rows) {
        multiply_tile<T, tile_rows, tile_vectors>(k, left, 1, tile_rows, right, width, out, ldc, here);
      } else {
        multiply_strip<T, tile_vectors>(rows, k, left, 1, tile_rows, right, width, out, ldc, here);
      }
    }
  }
}

/// One or a few rows of a: wide strips of b. Each element of b is read once.
template <class T, int rows>
__attribute__((noinline)) int64_t multiply_wide(int64_t n, int64_t k, const T* a, int64_t row_stride,
                                                int64_t depth_stride, const T* b, int64_t ldb, T* c, int64_t ldc,
                                                const GemmStore<T>& to) {
  constexpr int vectors = rows == 1 ? 8 : 4;
  constexpr int64_t width = vectors * lanes<T>;
  int64_t j = 0;
  for (; j + width <= n; j += width) {
    GemmStore<T> here = to;
    if (to.bias != nullptr) here.bias = to.bias + j;
    multiply_tile<T, rows, vectors>(k, a, row_stride, depth_stride, b + j, ldb, c + j, ldc, here);
  }
  return j;
}

template <class T>
void gemm_direct(int64_t m, int64_t n, int64_t k, const T* a, int64_t row_stride, int64_t depth_stride, const T* b,
                 int64_t ldb, T* c, int64_t ldc, GemmStore<T> to) {
  constexpr int64_t width = tile_columns<T>;
  constexpr int64_t edge_depth = 128;
  int64_t j = 0;
  if (m == 1) {
    j = multiply_wide<T, 1>(n, k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
  } else if (m == 2) {
    j = multiply_wide<T, 2>(n, k, a, row_stride, depth_stride, b, ldb, c, ldc, to);
  }
  for (; j + width <= n; j += width) {
    GemmStore<T> here = to;
    if (to.bias != nullptr) here.bias = to.bias + j;
    int64_t i = 0;
    for (; i + tile_rows <= m; i += tile_rows) {
      multiply_tile<T, tile_rows, tile_vectors>(k, a + i * row_stride, row_stride, depth_stride, b + j, ldb,
                                                c + i * ldc + j, ldc, here);
    }
    if (i < m) {
      multiply_strip<T, tile_vectors>(m - i, k, a + i * row_stride, row_stride, depth_stride, b + j, ldb,
                                      c + i * ldc + j, ldc, here);
    }
  }
  if (j == n) return;
  // The last columns, through a zero-padded copy of the part of b that fits the stack.
  alignas(64) T padded[edge_depth * width];
  const int64_t columns = n - j;
  int64_t p = 0;
  do {
    const int64_t depth = min_of<int64_t>(edge_depth, k - p);
    for (int64_t q = 0; q < depth; ++q) {
      for (int64_t l = 0; l < width; ++l) padded[q * width + l] = T(0);
      for (int64_t l = 0; l < columns; ++l) padded[q * width + l] = b[(p + q) * ldb + j + l];
    }
    GemmStore<T> here = {to.accumulate || p > 0, nullptr, false};
    if (p + depth == k) {
      here.bias = to.bias != nullptr ? to.bias + j : nullptr;
      here.relu = to.relu;
    }
    for (int64_t i = 0; i < m; i += tile_rows) {
      multiply_edge<T>(min_of<int64_t>(tile_rows, m - i), columns, depth, a + i * row_stride + p * depth_stride,
                       row_stride, depth_stride, padded, width, c + i * ldc + j, ldc, here);
    }
    p += depth;
  } while (p < k);
}

/// Dot products of one row of a with `count` rows of b.
template <class T, int count>
DFLOW_LANE void dot_rows(int64_t k, const T* a, const T* b, int64_t ldb, T* sums) {
  constexpr int width = lanes<T>;
  constexpr int chains = count == 1 ? 4 : 2;
  Vec<T> sum[count][chains] = {};
  int64_t p = 0;
  for (; p + chains * width <= k; p += chains * width) {
#pragma GCC unroll 4
    for (int u = 0; u < chains; ++u) {
      const Vec<T> left = load(a + p + u * width);
#pragma GCC unroll 4
      for (int r = 0; r < count; ++r) sum[r][u] += left * load(b + r * ldb + p + u * width);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < count; ++r) {
    Vec<T> total = sum[r][0];
#pragma GCC unroll 4
    for (int u = 1; u < chains; ++u) total += sum[r][u];
    T s = 0;
#pragma GCC unroll 16
    for (int l = 0; l < width; ++l) s += total[l];
    for (int64_t q = p; q < k; ++q) s += a[q] * b[r * ldb + q];
    sums[r] = s;
  }
}

template <class T>
void gemm_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
               GemmStore<T> to) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; j += 4) {
      T sums[4];
      const int64_t count = min_of<int64_t>(4, n - j);
      // Each output runs through the same chains whether it is alone or in a group of four.
      if (count == 4) {
        dot_rows<T, 4>(k, a + i * lda, b + j * ldb, ldb, sums);
      } else {
        for (int64_t r = 0; r < count; ++r) {
          T four[4];
          dot_rows<T, 4>(k, a + i * lda, b + (j + r) * ldb, 0, four);
          sums[r] = four[0];
        }
      }
      for (int64_t r = 0; r < count; ++r) {
        T s = sums[r] + (to.accumulate ? c[i * ldc + j + r] : T(0));
        if (to.bias != nullptr) s += to.bias[j + r];
        if (to.relu) s = s < T(0) ? T(0) : s;
        c[i * ldc + j + r] = s;
      }
    }
  }
}

template <class T>
void pack_a(int64_t m, int64_t k, const T* a, int64_t row_stride, int64_t depth_stride, T* DFLOW_RESTRICT to) {
  for (int64_t i = 0; i < m; i += tile_rows) {
    const T* from = a + i * row_stride;
    const int64_t rows = min_of<int64_t>(tile_rows, m - i);
    if (rows < tile_rows) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t r = 0; r < tile_rows; ++r) {
          to[p * tile_rows + r] = r < rows ? from[r * row_stride + p * depth_stride] : T(0);
        }
      }
    } else if (row_stride == 1) {
      for (int64_t p = 0; p < k; ++p) {
        __builtin_memcpy(to + p * tile_rows, from + p * depth_stride, tile_rows * sizeof(T));
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 16
        for (int r = 0; r < tile_rows; ++r) to[p * tile_rows + r] = from[r * row_stride + p * depth_stride];
      }
    }
    to += tile_rows * k;
  }
}

template <class T>
void pack_b(int64_t k, int64_t n, const T* b, int64_t depth_stride, int64_t column_stride, T* DFLOW_RESTRICT to) {
  constexpr int64_t width = tile_columns<T>;
  for (int64_t j = 0; j < n; j += width) {
    const T* from = b + j * column_stride;
    const int64_t columns = min_of<int64_t>(width, n - j);
    if (columns < width) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t l = 0; l < width; ++l) {
          to[p * width + l] = l < columns ? from[p * depth_stride + l * column_stride] : T(0);
        }
      }
    } else if (column_stride == 1) {
      for (int64_t p = 0; p < k; ++p) {
        __builtin_memcpy(to + p * width, from + p * depth_stride, width * sizeof(T));
      }
    } else {
      transpose_matrix<T>(width, k, from, column_stride, to, width);
    }
    to += width * k;
  }
}

template <class T>
inline constexpr GemmLoops<T> gemm_table = {
    tile_rows,      tile_columns<T>, 384 * 4 / sizeof(T), tile_rows * (144 / tile_rows), pack_a<T>, pack_b<T>,
    gemm_packed<T>, gemm_direct<T>,  gemm_dots<T>,
};
template <class T>
struct TableOf<GemmLoops<T>> {
  static constexpr const GemmLoops<T>& value = gemm_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
