#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Convolutions in which each channel has a filter of its own, over NHWC images, vectorised over channels.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// The taps [first, end) of a window at place `at`, `dilation` apart, that lie in [0, size).
struct TapRange {
  int64_t first, end;
};
DFLOW_LANE TapRange taps_inside(int64_t at, int64_t taps, int64_t dilation, int64_t size) {
  if (at >= size) return {0, 0};
  const int64_t before = at < 0 ? -at : 0, after = size - 1 - at;
  const int64_t first = dilation == 1 ? before : (before + dilation - 1) / dilation;
  return {first, min_of<int64_t>(taps, (dilation == 1 ? after : after / dilation) + 1)};
}

/// The places [first, end) of a window, `stride` apart, where a tap `offset` elements from the first place lies in
/// [0, size).
DFLOW_LANE TapRange places_inside(int64_t offset, int64_t places, int64_t stride, int64_t size) {
  if (offset >= size) return {0, 0};
  const int64_t before = offset < 0 ? -offset : 0;
  return {(before + stride - 1) / stride, min_of<int64_t>(places, (size - 1 - offset) / stride + 1)};
}

/// A register of channels, or one.
template <class V, class T>
DFLOW_LANE V channels_at(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

/// The taps of a filter that a window has on its image.
struct DepthwiseTaps {
  TapRange rows, cols;
};

/// The outputs of `places` neighbouring windows, of `registers` registers of channels each. `corner` is the first
/// window's index in the image, which may be negative where taps are left out.
template <class V, int places, int registers, class T>
DFLOW_LANE void depthwise_tile(const Windows& w, const DepthwiseTaps& taps, int64_t corner, const T* image,
                               const T* DFLOW_RESTRICT filter, bool accumulate, T* DFLOW_RESTRICT y) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  const int64_t step = w.stride_cols * w.channels;
  V sum[places][registers];
#pragma GCC unroll 4
  for (int p = 0; p < places; ++p) {
#pragma GCC unroll 2
    for (int u = 0; u < registers; ++u) {
      sum[p][u] = accumulate ? channels_at<V>(y + p * w.channels + u * width) : V{};
    }
  }
  for (int64_t r = taps.rows.first; r < taps.rows.end; ++r) {
    const int64_t row = corner + r * w.dilation_rows * w.in_cols * w.channels;
    for (int64_t c = taps.cols.first; c < taps.cols.end; ++c) {
      const T* x = image + (row + c * w.dilation_cols * w.channels);
      const T* tap = filter + (r * w.window_cols + c) * w.channels;
      V factor[registers];
#pragma GCC unroll 2
      for (int u = 0; u < registers; ++u) factor[u] = channels_at<V>(tap + u * width);
#pragma GCC unroll 4
      for (int p = 0; p < places; ++p) {
#pragma GCC unroll 2
        for (int u = 0; u < registers; ++u) sum[p][u] += channels_at<V>(x + p * step + u * width) * factor[u];
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < places; ++p) {
#pragma GCC unroll 2
    for (int u = 0; u < registers; ++u) {
      __builtin_memcpy(y + p * w.channels + u * width, &sum[p][u], sizeof(V));
    }
  }
}

template <int places, class T>
DFLOW_LANE void depthwise_places(const Windows& w, const DepthwiseTaps& taps, int64_t corner, const T* image,
                                 const T* filter, bool accumulate, T* y) {
  constexpr int64_t width = lanes<T>;
  int64_t c = 0;
  for (; c + 2 * width <= w.channels; c += 2 * width) {
    depthwise_tile<Vec<T>, places, 2>(w, taps, corner + c, image, filter + c, accumulate, y + c);
  }
  for (; c + width <= w.channels; c += width) {
    depthwise_tile<Vec<T>, places, 1>(w, taps, corner + c, image, filter + c, accumulate, y + c);
  }
  for (; c < w.channels; ++c) {
    depthwise_tile<T, places, 1>(w, taps, corner + c, image, filter + c, accumulate, y + c);
  }
}

template <class T>
void depthwise_row(const Windows& w, int64_t oy, const T* image, const T* filter, bool accumulate, T* y) {
  constexpr int64_t places = 4;
  const int64_t top = oy * w.stride_rows - w.pad_top, last = places * w.stride_cols;
  const TapRange rows = taps_inside(top, w.window_rows, w.dilation_rows, w.in_rows);
  const int64_t reach = (w.window_cols - 1) * w.dilation_cols;
  for (int64_t ox = 0; ox < w.out_cols;) {
    const int64_t left = ox * w.stride_cols - w.pad_left;
    const int64_t corner = (top * w.in_cols + left) * w.channels;
    if (left >= 0 && left + last - w.stride_cols + reach < w.in_cols && ox + places <= w.out_cols) {
      const DepthwiseTaps taps{rows, {0, w.window_cols}};
      depthwise_places<places>(w, taps, corner, image, filter, accumulate, y + ox * w.channels);
      ox += places;
    } else {
      const DepthwiseTaps taps{rows, taps_inside(left, w.window_cols, w.dilation_cols, w.in_cols)};
      depthwise_places<1>(w, taps, corner, image, filter, accumulate, y + ox * w.channels);
      ++ox;
    }
  }
}

template <class T>
void depthwise_input_row(const Windows& w, int64_t iy, const T* DFLOW_RESTRICT grad_y, const T* DFLOW_RESTRICT filter,
                         T* DFLOW_RESTRICT grad_x) {
  for (int64_t i = 0; i < w.in_cols * w.channels; ++i) grad_x[i] = T(0);
  for (int64_t r = 0; r < w.window_rows; ++r) {
    const int64_t from_first = iy + w.pad_top - r * w.dilation_rows;
    if (from_first < 0 || from_first % w.stride_rows != 0 || from_first / w.stride_rows >= w.out_rows) continue;
    const T* dy = grad_y + from_first / w.stride_rows * w.out_cols * w.channels;
    for (int64_t c = 0; c < w.window_cols; ++c) {
      const T* tap = filter + (r * w.window_cols + c) * w.channels;
      const int64_t offset = c * w.dilation_cols - w.pad_left;
      const TapRange places = places_inside(offset, w.out_cols, w.stride_cols, w.in_cols);
      for (int64_t ox = places.first; ox < places.end; ++ox) {
        T* to = grad_x + (ox * w.stride_cols + offset) * w.channels;
        const T* from = dy + ox * w.channels;
        for (int64_t i = 0; i < w.channels; ++i) to[i] += from[i] * tap[i];
      }
    }
  }
}

/// Adds the products of one tap, summed over the places of a row, to the gradients of `registers` registers of
/// channels.
template <class V, int registers, class T>
DFLOW_LANE void depthwise_tap_gradient(const Windows& w, int64_t places, const T* x, const T* dy,
                                       T* DFLOW_RESTRICT to) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  const int64_t step = w.stride_cols * w.channels;
  V sum[registers];
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) sum[u] = V{};
  for (int64_t p = 0; p < places; ++p, x += step, dy += w.channels) {
#pragma GCC unroll 4
    for (int u = 0; u < registers; ++u) sum[u] += channels_at<V>(x + u * width) * channels_at<V>(dy + u * width);
  }
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) {
    sum[u] += channels_at<V>(to + u * width);
    __builtin_memcpy(to + u * width, &sum[u], sizeof(V));
  }
}

template <class T>
void depthwise_filter_row(const Windows& w, int64_t oy, const T* image, const T* grad_y, T* grad_filter) {
  constexpr int64_t width = lanes<T>;
  const int64_t top = oy * w.stride_rows - w.pad_top;
  const TapRange rows = taps_inside(top, w.window_rows, w.dilation_rows, w.in_rows);
  for (int64_t r = rows.first; r < rows.end; ++r) {
    const T* row = image + (top + r * w.dilation_rows) * w.in_cols * w.channels;
    for (int64_t t = 0; t < w.window_cols; ++t) {
      const int64_t offset = t * w.dilation_cols - w.pad_left;
      const TapRange places = places_inside(offset, w.out_cols, w.stride_cols, w.in_cols);
      const int64_t count = places.end - places.first;
      if (count <= 0) continue;
      const T* x = row + (places.first * w.stride_cols + offset) * w.channels;
      const T* dy = grad_y + places.first * w.channels;
      T* to = grad_filter + (r * w.window_cols + t) * w.channels;
      int64_t c = 0;
      for (; c + 4 * width <= w.channels; c += 4 * width) {
        depthwise_tap_gradient<Vec<T>, 4>(w, count, x + c, dy + c, to + c);
      }
      for (; c + width <= w.channels; c += width) {
        depthwise_tap_gradient<Vec<T>, 1>(w, count, x + c, dy + c, to + c);
      }
      for (; c < w.channels; ++c) depthwise_tap_gradient<T, 1>(w, count, x + c, dy + c, to + c);
    }
  }
}

template <class T>
inline constexpr DepthwiseLoops<T> depthwise_table = {depthwise_row<T>, depthwise_input_row<T>,
                                                      depthwise_filter_row<T>};
template <class T>
struct TableOf<DepthwiseLoops<T>> {
  static constexpr const DepthwiseLoops<T>& value = depthwise_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
