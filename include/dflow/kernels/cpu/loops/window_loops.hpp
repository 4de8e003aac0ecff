#pragma once

#include <dflow/kernels/cpu/loops/gemm_loops.hpp>

/// Convolutions without patches: the register tile of a product with windows as rows, read in place from the image.
/// Each output is the same chain of multiply-adds as in the product of patches.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// c[rows, vectors * lanes] of neighbouring windows, one a row; b is a packed strip.
template <class T, int rows, int vectors>
DFLOW_LANE void window_tile(const WindowRow& w, const T* DFLOW_RESTRICT image, const T* DFLOW_RESTRICT b, T* c,
                            int64_t ldc, const GemmStore<T>& to) {
  Vec<T> sum[rows][vectors];
  start_tile(sum, c, ldc, to);
  for (int64_t r = 0; r < w.rows; ++r) {
    for (int64_t g = 0; g < w.groups; ++g) {
      const T* a = image + r * w.row_step + g * w.group_step;
#pragma GCC unroll 1
      for (int64_t d = 0; d < w.depth; ++d) {
        multiply_step(sum, a + d, w.window_step, b);
        b += tile_columns<T>;
      }
    }
  }
  finish_tile(sum, c, ldc, to);
}

/// Calls window_tile with a run-time number of rows in 1..tile_rows.
template <class T, int vectors, int rows = tile_rows>
DFLOW_LANE void window_rows(int64_t m, const WindowRow& w, const T* image, const T* b, T* c, int64_t ldc,
                            const GemmStore<T>& to) {
  if constexpr (rows == 1) {
    window_tile<T, 1, vectors>(w, image, b, c, ldc, to);
  } else if (m == rows) {
    window_tile<T, rows, vectors>(w, image, b, c, ldc, to);
  } else {
    window_rows<T, vectors, rows - 1>(m, w, image, b, c, ldc, to);
  }
}

template <class T, int vectors>
__attribute__((noinline)) void window_strip(int64_t m, const WindowRow& w, const T* image, const T* b, T* c,
                                            int64_t ldc, const GemmStore<T>& to) {
  window_rows<T, vectors>(m, w, image, b, c, ldc, to);
}

template <class T>
__attribute__((noinline)) void window_edge(int64_t m, int64_t n, const WindowRow& w, const T* image, const T* b, T* c,
                                           int64_t ldc, const GemmStore<T>& to) {
  EdgeTile<T> edge(m, n, c, ldc, to);
  if (n < lanes<T>) {
    window_strip<T, 1>(m, w, image, b, edge.tile, edge.width, edge.store);
  } else {
    window_strip<T, 2>(m, w, image, b, edge.tile, edge.width, edge.store);
  }
  edge.write(m, n, c, ldc);
}

template <class T>
void multiply_windows(const WindowRow& w, int64_t count, int64_t channels, const T* image, const T* filter, T* out,
                      GemmStore<T> to) {
  constexpr int64_t width = tile_columns<T>;
  const int64_t size = w.rows * w.groups * w.depth;
  // Tiles of equal height: a low one leaves the multipliers waiting.
  const int64_t tiles = (count + tile_rows - 1) / tile_rows;
  for (int64_t j = 0; j < channels; j += width, filter += size * width) {
    GemmStore<T> here = to;
    if (to.bias != nullptr) here.bias = to.bias + j;
    const int64_t columns = min_of<int64_t>(width, channels - j);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t first = count * t / tiles;
      const int64_t m = count * (t + 1) / tiles - first;
      const T* from = image + first * w.window_step;
      T* c = out + first * channels + j;
      if (columns == width) {
        window_strip<T, 2>(m, w, from, filter, c, channels, here);
      } else if (columns == lanes<T>) {
        window_strip<T, 1>(m, w, from, filter, c, channels, here);
      } else {
        window_edge<T>(m, columns, w, from, filter, c, channels, here);
      }
    }
  }
}

template <class T>
inline constexpr WindowLoops<T> window_table = {multiply_windows<T>};
template <class T>
struct TableOf<WindowLoops<T>> {
  static constexpr const WindowLoops<T>& value = window_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
