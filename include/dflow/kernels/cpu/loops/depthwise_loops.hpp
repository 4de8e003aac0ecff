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
  const int64_t before = offset < 0 ? -offset : 0, after = size - 1 - offset;
  const int64_t first = stride == 1 ? before : (before + stride - 1) / stride;
  return {first, min_of<int64_t>(places, (stride == 1 ? after : after / stride) + 1)};
}

/// The channels in a V, which is a register or one number.
template <class V, class T>
inline constexpr int64_t channels_in = sizeof(V) / sizeof(T);
template <class T>
inline constexpr int64_t channels_in<T, T> = 1;

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
  constexpr int64_t width = channels_in<V, T>;
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

/// Part of a register, for the channels that fill none: a half or a quarter of one, down to 16 bytes.
template <class T, int part>
using VecPart = typename VecOf<T, (vector_bytes / part > 16 ? vector_bytes / part : 16)>::type;

/// Calls body(V, registers, channel) for runs of `registers` Vs of channels that cover [first, end).
template <class T, int registers, class Body>
DFLOW_LANE void for_each_run(int64_t first, int64_t end, const Body& body) {
  constexpr int64_t width = lanes<T>, half = sizeof(VecPart<T, 2>) / sizeof(T),
                    quarter = sizeof(VecPart<T, 4>) / sizeof(T);
  int64_t c = first;
  for (; c + registers * width <= end; c += registers * width) body.template run<Vec<T>, registers>(c);
  for (; c + width <= end; c += width) body.template run<Vec<T>, 1>(c);
  if constexpr (half < width) {
    for (; c + half <= end; c += half) body.template run<VecPart<T, 2>, 1>(c);
  }
  if constexpr (quarter < half) {
    for (; c + quarter <= end; c += quarter) body.template run<VecPart<T, 4>, 1>(c);
  }
  for (; c < end; ++c) body.template run<T, 1>(c);
}

/// `places` neighbouring windows of some channels.
template <int places, class T>
struct DepthwisePlaces {
  const Windows& w;
  const DepthwiseTaps& taps;
  int64_t corner;
  const T *image, *filter;
  bool accumulate;
  T* y;

  template <class V, int registers>
  DFLOW_LANE void run(int64_t c) const {
    depthwise_tile<V, places, registers>(w, taps, corner + c, image, filter + c, accumulate, y + c);
  }
};

template <class T>
void depthwise_row(const Windows& w, int64_t oy, const T* image, const T* filter, bool accumulate, T* y) {
  constexpr int64_t places = 4;
  const int64_t top = oy * w.stride_rows - w.pad_top, last = places * w.stride_cols;
  const TapRange rows = taps_inside(top, w.window_rows, w.dilation_rows, w.in_rows);
  const int64_t reach = (w.window_cols - 1) * w.dilation_cols;
  // The filter of a block of channels stays in the cache while all windows of the row pass it.
  constexpr int64_t block = 8 * lanes<T>;
  for (int64_t c = 0; c < w.channels; c += block) {
    const int64_t end = min_of<int64_t>(w.channels, c + block);
    for (int64_t ox = 0; ox < w.out_cols;) {
      const int64_t left = ox * w.stride_cols - w.pad_left;
      const int64_t corner = (top * w.in_cols + left) * w.channels;
      T* to = y + ox * w.channels;
      if (left >= 0 && left + last - w.stride_cols + reach < w.in_cols && ox + places <= w.out_cols) {
        const DepthwiseTaps taps{rows, {0, w.window_cols}};
        for_each_run<T, 2>(c, end, DepthwisePlaces<places, T>{w, taps, corner, image, filter, accumulate, to});
        ox += places;
      } else {
        const DepthwiseTaps taps{rows, taps_inside(left, w.window_cols, w.dilation_cols, w.in_cols)};
        for_each_run<T, 2>(c, end, DepthwisePlaces<1, T>{w, taps, corner, image, filter, accumulate, to});
        ++ox;
      }
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

/// Adds the part of a row of the output to the gradients of some channels of the filter.
template <class T>
struct DepthwiseFilterRow {
  const Windows& w;
  int64_t top;
  TapRange rows;
  const T *image, *grad_y;
  T* grad_filter;

  template <class V, int registers>
  DFLOW_LANE void run(int64_t c) const {
    constexpr int64_t width = channels_in<V, T>;
    const int64_t step = w.stride_cols * w.channels;
    for (int64_t r = rows.first; r < rows.end; ++r) {
      const T* row = image + (top + r * w.dilation_rows) * w.in_cols * w.channels + c;
      for (int64_t t = 0; t < w.window_cols; ++t) {
        const int64_t offset = t * w.dilation_cols - w.pad_left;
        const TapRange places = places_inside(offset, w.out_cols, w.stride_cols, w.in_cols);
        if (places.end <= places.first) continue;
        const T* x = row + (places.first * w.stride_cols + offset) * w.channels;
        const T* dy = grad_y + places.first * w.channels + c;
        T* to = grad_filter + (r * w.window_cols + t) * w.channels + c;
        // Several sums of a register, so that an addition does not wait for the last one.
        constexpr int sums = 4 / registers;
        V sum[sums][registers] = {};
        const auto add = [&](int which) __attribute__((always_inline)) {
#pragma GCC unroll 4
          for (int u = 0; u < registers; ++u) {
            sum[which][u] += channels_at<V>(x + u * width) * channels_at<V>(dy + u * width);
          }
          x += step;
          dy += w.channels;
        };
        int64_t p = places.first;
        for (; p + sums <= places.end; p += sums) {
#pragma GCC unroll 4
          for (int s = 0; s < sums; ++s) add(s);
        }
        for (; p < places.end; ++p) add(0);
#pragma GCC unroll 4
        for (int u = 0; u < registers; ++u) {
          V all = channels_at<V>(to + u * width);
#pragma GCC unroll 4
          for (int s = 0; s < sums; ++s) all += sum[s][u];
          __builtin_memcpy(to + u * width, &all, sizeof(V));
        }
      }
    }
  }
};

template <class T>
void depthwise_filter_row(const Windows& w, int64_t oy, const T* image, const T* grad_y, T* grad_filter) {
  const int64_t top = oy * w.stride_rows - w.pad_top;
  const TapRange rows = taps_inside(top, w.window_rows, w.dilation_rows, w.in_rows);
  for_each_run<T, 4>(0, w.channels, DepthwiseFilterRow<T>{w, top, rows, image, grad_y, grad_filter});
}

template <class T>
inline constexpr DepthwiseLoops<T> depthwise_table = {depthwise_row<T>, depthwise_input_row<T>,
                                                      depthwise_filter_row<T>};
template <class T>
struct TableOf<DepthwiseLoops<T>> {
  static constexpr const DepthwiseLoops<T>& value = depthwise_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
