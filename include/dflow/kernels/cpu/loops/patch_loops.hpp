#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Images to rows of patches and back, for convolutions by products.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
DFLOW_LANE void copy_run(int64_t n, const T* DFLOW_RESTRICT from, T* DFLOW_RESTRICT to) {
  if (n >= 64) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

/// The columns [first, end) of a window row that are inside the image. The row's first column is `x`.
struct Inside {
  int64_t first, end;
};
DFLOW_LANE Inside columns_inside(const Windows& w, int64_t x) {
  int64_t first = 0, end = w.window_cols;
  if (w.dilation_cols == 1) {
    first = min_of<int64_t>(max_of<int64_t>(0, -x), end);
    end = max_of<int64_t>(first, min_of<int64_t>(end, w.in_cols - x));
  }
  return {first, end};
}

template <class T>
void gather_patches(const Windows& w, const T* images, int64_t first, int64_t count, T* DFLOW_RESTRICT to) {
  const int64_t per_image = w.out_rows * w.out_cols;
  const int64_t row = w.window_cols * w.channels;
  for (int64_t i = first; i < first + count; ++i) {
    const T* image = images + i / per_image * (w.in_rows * w.in_cols * w.channels);
    const int64_t y0 = i % per_image / w.out_cols * w.stride_rows - w.pad_top;
    const int64_t x0 = i % w.out_cols * w.stride_cols - w.pad_left;
    const Inside in = columns_inside(w, x0);
    for (int64_t r = 0; r < w.window_rows; ++r, to += row) {
      const int64_t y = y0 + r * w.dilation_rows;
      if (y < 0 || y >= w.in_rows) {
        for (int64_t l = 0; l < row; ++l) to[l] = T(0);
        continue;
      }
      const T* from = image + (y * w.in_cols + x0) * w.channels;
      if (w.dilation_cols == 1) {
        for (int64_t l = 0; l < in.first * w.channels; ++l) to[l] = T(0);
        copy_run((in.end - in.first) * w.channels, from + in.first * w.channels, to + in.first * w.channels);
        for (int64_t l = in.end * w.channels; l < row; ++l) to[l] = T(0);
        continue;
      }
      for (int64_t c = 0; c < w.window_cols; ++c) {
        const int64_t x = x0 + c * w.dilation_cols;
        T* cell = to + c * w.channels;
        if (x < 0 || x >= w.in_cols) {
          for (int64_t l = 0; l < w.channels; ++l) cell[l] = T(0);
        } else {
          copy_run(w.channels, from + c * w.dilation_cols * w.channels, cell);
        }
      }
    }
  }
}

template <class T>
void scatter_add_patches(const Windows& w, const T* DFLOW_RESTRICT from, int64_t first, int64_t count,
                         T* DFLOW_RESTRICT image) {
  const int64_t row = w.window_cols * w.channels;
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t y0 = i / w.out_cols * w.stride_rows - w.pad_top;
    const int64_t x0 = i % w.out_cols * w.stride_cols - w.pad_left;
    const Inside in = columns_inside(w, x0);
    for (int64_t r = 0; r < w.window_rows; ++r, from += row) {
      const int64_t y = y0 + r * w.dilation_rows;
      if (y < 0 || y >= w.in_rows) continue;
      T* to = image + (y * w.in_cols + x0) * w.channels;
      if (w.dilation_cols == 1) {
        for (int64_t l = in.first * w.channels; l < in.end * w.channels; ++l) to[l] += from[l];
        continue;
      }
      for (int64_t c = 0; c < w.window_cols; ++c) {
        const int64_t x = x0 + c * w.dilation_cols;
        if (x < 0 || x >= w.in_cols) continue;
        T* cell = to + c * w.dilation_cols * w.channels;
        for (int64_t l = 0; l < w.channels; ++l) cell[l] += from[c * w.channels + l];
      }
    }
  }
}

template <class T>
void sum_parts(int64_t n, int64_t parts, const T* DFLOW_RESTRICT from, T* DFLOW_RESTRICT sum) {
  constexpr int64_t tile = 1024;
  for (int64_t begin = 0; begin < n; begin += tile) {
    const int64_t end = min_of(n, begin + tile);
    for (int64_t i = begin; i < end; ++i) sum[i] = from[i];
    for (int64_t p = 1; p < parts; ++p) {
      for (int64_t i = begin; i < end; ++i) sum[i] += from[p * n + i];
    }
  }
}

template <class T>
inline constexpr PatchLoops<T> patch_table = {gather_patches<T>, scatter_add_patches<T>, sum_parts<T>};
template <class T>
struct TableOf<PatchLoops<T>> {
  static constexpr const PatchLoops<T>& value = patch_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
