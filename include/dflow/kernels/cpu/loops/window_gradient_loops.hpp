#pragma once

#include <dflow/kernels/cpu/loops/gemm_loops.hpp>

/// The gradient of a convolution by its filter without patches: register tiles of a product. Its operands are the
/// windows, transposed and read in place from the image, and the gradients of the output.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// c[groups * depth, vectors * lanes] += for all windows, the outer product of `groups` runs of `depth` elements of a
/// window, group_step apart, and a row of b.
template <class T, int groups, int depth, int vectors>
__attribute__((noinline)) void gradient_tile(const WindowBand& band, const T* DFLOW_RESTRICT image, int64_t group_step,
                                             const T* DFLOW_RESTRICT b, T* c, int64_t ldc) {
  const int64_t cols = band.cols, window_step = band.window_step, grad_step = band.grad_step;
  // From 0, and added to c at the end: no accumulator sums more than the windows of a band.
  Vec<T> sum[groups][depth][vectors];
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) start_tile(sum[g], c, ldc, GemmStore<T>{});
  for (int64_t y = 0; y < band.rows; ++y, image += band.row_step) {
    const T* a = image;
#pragma GCC unroll 1
    for (int64_t x = 0; x < cols; ++x) {
      // The first tile of a band brings the gradients in from memory.
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(b + 32 * grad_step + v * lanes<T>);
      Vec<T> right[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) right[v] = load(b + v * lanes<T>);
#pragma GCC unroll 16
      for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 16
        for (int d = 0; d < depth; ++d) {
          const Vec<T> left = splat(a[g * group_step + d]);
#pragma GCC unroll 8
          for (int v = 0; v < vectors; ++v) sum[g][d][v] += left * right[v];
        }
      }
      a += window_step;
      b += grad_step;
    }
  }
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 16
    for (int d = 0; d < depth; ++d, c += ldc) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store(c + v * lanes<T>, load(c + v * lanes<T>) + sum[g][d][v]);
    }
  }
}

/// Calls gradient_tile with run-time numbers of groups and elements; their product is at most tile_rows, and there are
/// at most most_groups groups.
inline constexpr int most_groups = 4;
template <class T, int vectors, int groups = 1, int depth = 1>
DFLOW_LANE void gradient_tiles(int64_t g, int64_t d, const WindowBand& band, const T* image, int64_t group_step,
                               const T* b, T* c, int64_t ldc) {
  if (g == groups && d == depth) {
    gradient_tile<T, groups, depth, vectors>(band, image, group_step, b, c, ldc);
  } else if constexpr (groups * (depth + 1) <= tile_rows) {
    gradient_tiles<T, vectors, groups, depth + 1>(g, d, band, image, group_step, b, c, ldc);
  } else if constexpr (groups < most_groups) {
    gradient_tiles<T, vectors, groups + 1, 1>(g, d, band, image, group_step, b, c, ldc);
  }
}

template <class T, int vectors>
DFLOW_LANE void gradient_strip(int64_t groups, int64_t depth, const WindowBand& band, const T* image,
                               int64_t group_step, const T* b, T* c, int64_t ldc) {
  gradient_tiles<T, vectors>(groups, depth, band, image, group_step, b, c, ldc);
}

template <class T>
__attribute__((noinline)) void gradient_edge(int64_t n, int64_t groups, int64_t depth, const WindowBand& band,
                                             const T* image, int64_t group_step, const T* b, T* c, int64_t ldc) {
  EdgeTile<T> edge(groups * depth, n, c, ldc, GemmStore<T>{true, nullptr, false});
  if (n < lanes<T>) {
    gradient_strip<T, 1>(groups, depth, band, image, group_step, b, edge.tile, edge.width);
  } else {
    gradient_strip<T, 2>(groups, depth, band, image, group_step, b, edge.tile, edge.width);
  }
  edge.write(groups * depth, n, c, ldc);
}

/// Tiles of elements [first, first + depth) of this many groups.
template <class T>
DFLOW_LANE void gradient_columns(int64_t n, int64_t groups, int64_t depth, const WindowBand& band, const T* image,
                                 int64_t group_step, const T* b, T* c, int64_t ldc) {
  if (n == tile_columns<T>) {
    gradient_strip<T, 2>(groups, depth, band, image, group_step, b, c, ldc);
  } else if (n == lanes<T>) {
    gradient_strip<T, 1>(groups, depth, band, image, group_step, b, c, ldc);
  } else {
    gradient_edge<T>(n, groups, depth, band, image, group_step, b, c, ldc);
  }
}

template <class T>
void add_window_products(const WindowRow& w, const WindowBand& band, int64_t channels, const T* image, const T* grads,
                         T* grad_filter) {
  constexpr int64_t width = tile_columns<T>;
  // Short runs share a tile: the runs of one row of the window or, if a row is one run, of several rows.
  const bool is_one_run = w.groups == 1;
  const int64_t outer = is_one_run ? 1 : w.rows, inner = is_one_run ? w.rows : w.groups;
  const int64_t inner_step = is_one_run ? w.row_step : w.group_step;
  const int64_t tiles = (w.depth + tile_rows - 1) / tile_rows;
  const int64_t together = max_of<int64_t>(1, min_of<int64_t>(most_groups, tile_rows / w.depth));
  for (int64_t j = 0; j < channels; j += width, grads += band.strip_step) {
    const int64_t n = min_of<int64_t>(width, channels - j);
    T* c = grad_filter + j;
    for (int64_t r = 0; r < outer; ++r) {
      for (int64_t g = 0; g < inner; g += together) {
        const int64_t groups = min_of(together, inner - g);
        const T* from = image + r * w.row_step + g * inner_step;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t first = w.depth * t / tiles;
          const int64_t depth = w.depth * (t + 1) / tiles - first;
          gradient_columns<T>(n, groups, depth, band, from + first, inner_step, grads, c, channels);
          c += groups * depth * channels;
        }
      }
    }
  }
}

template <class T>
inline constexpr WindowGradientLoops<T> window_gradient_table = {add_window_products<T>};
template <class T>
struct TableOf<WindowGradientLoops<T>> {
  static constexpr const WindowGradientLoops<T>& value = window_gradient_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
