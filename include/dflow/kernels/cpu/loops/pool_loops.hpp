#pragma once

#include <dflow/kernels/cpu/loops/reduce_loops.hpp>

/// Pooling over windows of NHWC images, vectorised over channels: one register of channels goes through its window.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// The part of a window that is inside the image.
struct WindowPart {
  int64_t y_begin, y_end, x_begin, x_end;
};
DFLOW_LANE WindowPart window_part(const Windows& w, int64_t oy, int64_t ox) {
  const int64_t y = oy * w.stride_rows - w.pad_top;
  const int64_t x = ox * w.stride_cols - w.pad_left;
  return {max_of<int64_t>(y, 0), min_of(y + w.window_rows, w.in_rows), max_of<int64_t>(x, 0),
          min_of(x + w.window_cols, w.in_cols)};
}

/// Makes a mean of the sum of a window's elements: their quotient, which for powers of two is a product. V is T or a
/// register of them.
template <class T>
struct WindowMean {
  static DFLOW_LANE WindowMean of_part(const WindowPart& part) {
    const int64_t rows = max_of<int64_t>(0, part.y_end - part.y_begin);
    const int64_t all = rows * max_of<int64_t>(0, part.x_end - part.x_begin);
    const T count = static_cast<T>(all);
    return {(all & (all - 1)) != 0, count, all == 0 ? T(0) : T(1) / count};
  }
  template <class V>
  DFLOW_LANE V of(V sum) const {
    return divides ? sum / count : sum * factor;
  }

  bool divides = false;
  T count = 0, factor = 0;
};

/// `registers` registers of channels of one window.
template <class Op, class T, int registers>
DFLOW_LANE void pool_registers(const Windows& w, const WindowPart& part, const T* x, const WindowMean<T>& mean, T* y) {
  constexpr int width = lanes<T>;
  Vec<T> best[registers];
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) best[u] = splat(Op::identity(T{}));
  for (int64_t iy = part.y_begin; iy < part.y_end; ++iy) {
    const T* from = x + (iy * w.in_cols + part.x_begin) * w.channels;
    for (int64_t ix = part.x_begin; ix < part.x_end; ++ix, from += w.channels) {
#pragma GCC unroll 4
      for (int u = 0; u < registers; ++u) best[u] = Op::combine(best[u], load(from + u * width));
    }
  }
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) {
    if constexpr (__is_same(Op, Sum)) best[u] = mean.of(best[u]);
    store(y + u * width, best[u]);
  }
}

template <class Op, class T>
void pool_image(const Windows& w, int64_t first, int64_t end, const T* x, T* y) {
  constexpr int64_t width = lanes<T>;
  for (int64_t oy = 0; oy < w.out_rows; ++oy) {
    for (int64_t ox = 0; ox < w.out_cols; ++ox) {
      const WindowPart part = window_part(w, oy, ox);
      T* to = y + (oy * w.out_cols + ox) * w.channels;
      WindowMean<T> mean;
      if constexpr (__is_same(Op, Sum)) mean = WindowMean<T>::of_part(part);
      int64_t c = first;
      for (; c + 4 * width <= end; c += 4 * width) pool_registers<Op, T, 4>(w, part, x + c, mean, to + c);
      for (; c + width <= end; c += width) pool_registers<Op, T, 1>(w, part, x + c, mean, to + c);
      for (; c < end; ++c) {
        T best = Op::identity(T{});
        for (int64_t iy = part.y_begin; iy < part.y_end; ++iy) {
          for (int64_t ix = part.x_begin; ix < part.x_end; ++ix) {
            best = Op::combine(best, x[(iy * w.in_cols + ix) * w.channels + c]);
          }
        }
        if constexpr (__is_same(Op, Sum)) best = mean.of(best);
        to[c] = best;
      }
    }
  }
}

template <class T>
DFLOW_LANE void clear_channels(const Windows& w, int64_t first, int64_t end, T* x) {
  for (int64_t p = 0; p < w.in_rows * w.in_cols; ++p) {
    for (int64_t c = first; c < end; ++c) x[p * w.channels + c] = T(0);
  }
}

/// Whether each pixel is in one window, so that its gradient may be stored instead of added to a cleared one.
DFLOW_LANE bool is_partition(const Windows& w) {
  return w.stride_rows == w.window_rows && w.stride_cols == w.window_cols &&
         w.out_rows * w.stride_rows - w.pad_top >= w.in_rows && w.out_cols * w.stride_cols - w.pad_left >= w.in_cols;
}

/// Gives the gradient of one window to the first maximum of each of its channels; V is a register or one number, P as
/// many positions. A NaN counts as larger than any number. Several registers at a time read memory in order.
template <class V, class P, int registers, class T>
DFLOW_LANE void maximum_backward_window(const Windows& w, const WindowPart& part, bool store_only, const T* x,
                                        const T* grad_y, T* grad_x) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  const auto get = [](const T* from) __attribute__((always_inline)) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  };
  V best[registers];
  P where[registers];
  const T* corner = x + (part.y_begin * w.in_cols + part.x_begin) * w.channels;
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) best[u] = get(corner + u * width), where[u] = P{};
  P tap = {};
  for (int64_t iy = part.y_begin; iy < part.y_end; ++iy) {
    const T* from = x + (iy * w.in_cols + part.x_begin) * w.channels;
    for (int64_t ix = part.x_begin; ix < part.x_end; ++ix, from += w.channels, tap += 1) {
#pragma GCC unroll 4
      for (int u = 0; u < registers; ++u) {
        const V value = get(from + u * width);
        const auto better = (value > best[u]) | ((value != value) & (best[u] == best[u]));
        best[u] = better ? value : best[u];
        where[u] = better ? tap : where[u];
      }
    }
  }
  tap = P{};
  for (int64_t iy = part.y_begin; iy < part.y_end; ++iy) {
    T* to = grad_x + (iy * w.in_cols + part.x_begin) * w.channels;
    for (int64_t ix = part.x_begin; ix < part.x_end; ++ix, to += w.channels, tap += 1) {
#pragma GCC unroll 4
      for (int u = 0; u < registers; ++u) {
        V sum = where[u] == tap ? get(grad_y + u * width) : V{};
        if (!store_only) sum += get(to + u * width);
        __builtin_memcpy(to + u * width, &sum, sizeof sum);
      }
    }
  }
}

template <class T>
void maximum_backward_image(const Windows& w, int64_t first, int64_t end, const T* x, const T* DFLOW_RESTRICT grad_y,
                            T* DFLOW_RESTRICT grad_x) {
  constexpr int64_t width = lanes<T>;
  using Position = typename PositionOf<sizeof(T)>::type;
  const bool store_only = is_partition(w);
  if (!store_only) clear_channels(w, first, end, grad_x);
  for (int64_t oy = 0; oy < w.out_rows; ++oy) {
    for (int64_t ox = 0; ox < w.out_cols; ++ox) {
      const WindowPart part = window_part(w, oy, ox);
      if (part.y_begin >= part.y_end || part.x_begin >= part.x_end) continue;
      const T* dy = grad_y + (oy * w.out_cols + ox) * w.channels;
      int64_t c = first;
      for (; c + 4 * width <= end; c += 4 * width) {
        maximum_backward_window<Vec<T>, Vec<Position>, 4>(w, part, store_only, x + c, dy + c, grad_x + c);
      }
      for (; c + width <= end; c += width) {
        maximum_backward_window<Vec<T>, Vec<Position>, 1>(w, part, store_only, x + c, dy + c, grad_x + c);
      }
      for (; c < end; ++c) maximum_backward_window<T, Position, 1>(w, part, store_only, x + c, dy + c, grad_x + c);
    }
  }
}

/// Divides the gradient of one window among its elements; V is a register or one number.
template <class V, int registers, class T>
DFLOW_LANE void average_backward_window(const Windows& w, const WindowPart& part, const WindowMean<T>& mean,
                                        bool store_only, const T* grad_y, T* grad_x) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  V share[registers];
#pragma GCC unroll 4
  for (int u = 0; u < registers; ++u) {
    __builtin_memcpy(&share[u], grad_y + u * width, sizeof(V));
    share[u] = mean.of(share[u]);
  }
  for (int64_t iy = part.y_begin; iy < part.y_end; ++iy) {
    T* to = grad_x + (iy * w.in_cols + part.x_begin) * w.channels;
    for (int64_t ix = part.x_begin; ix < part.x_end; ++ix, to += w.channels) {
#pragma GCC unroll 4
      for (int u = 0; u < registers; ++u) {
        V sum = share[u];
        if (!store_only) {
          V before;
          __builtin_memcpy(&before, to + u * width, sizeof before);
          sum += before;
        }
        __builtin_memcpy(to + u * width, &sum, sizeof sum);
      }
    }
  }
}

template <class T>
void average_backward_image(const Windows& w, int64_t first, int64_t end, const T* DFLOW_RESTRICT grad_y,
                            T* DFLOW_RESTRICT grad_x) {
  constexpr int64_t width = lanes<T>;
  const bool store_only = is_partition(w);
  if (!store_only) clear_channels(w, first, end, grad_x);
  for (int64_t oy = 0; oy < w.out_rows; ++oy) {
    for (int64_t ox = 0; ox < w.out_cols; ++ox) {
      const WindowPart part = window_part(w, oy, ox);
      const WindowMean<T> mean = WindowMean<T>::of_part(part);
      const T* dy = grad_y + (oy * w.out_cols + ox) * w.channels;
      int64_t c = first;
      for (; c + 4 * width <= end; c += 4 * width) {
        average_backward_window<Vec<T>, 4>(w, part, mean, store_only, dy + c, grad_x + c);
      }
      for (; c + width <= end; c += width) {
        average_backward_window<Vec<T>, 1>(w, part, mean, store_only, dy + c, grad_x + c);
      }
      for (; c < end; ++c) average_backward_window<T, 1>(w, part, mean, store_only, dy + c, grad_x + c);
    }
  }
}

template <class T>
constexpr PoolLoops<T> make_pool_loops() {
  if constexpr (__is_same(T, float) || __is_same(T, double)) {
    return {pool_image<Maximum, T>, maximum_backward_image<T>, pool_image<Sum, T>, average_backward_image<T>};
  } else {
    return {pool_image<Maximum, T>, nullptr, nullptr, nullptr};
  }
}
template <class T>
inline constexpr PoolLoops<T> pool_table = make_pool_loops<T>();
template <class T>
struct TableOf<PoolLoops<T>> {
  static constexpr const PoolLoops<T>& value = pool_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
