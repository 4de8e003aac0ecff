#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>

#include <cstdint>

namespace dflow::cuda {

/// Windows that slide over the rows and columns of images [batch, in_rows, in_cols, channels] and stand at [batch,
/// out_rows, out_cols]. Elements of a window lie `dilation` apart.
struct WindowPlan {
  std::int64_t in_rows = 0, in_cols = 0, channels = 0;
  std::int64_t out_rows = 0, out_cols = 0;
  std::int64_t window_rows = 0, window_cols = 0;
  std::int64_t stride_rows = 1, stride_cols = 1;
  std::int64_t dilation_rows = 1, dilation_cols = 1;
  std::int64_t pad_top = 0, pad_left = 0;
};

/// The elements under the filter of a convolution, one row for each place: columns [rows, window_rows, window_cols,
/// channels].
struct ColumnsArgs {
  WindowPlan windows;
  std::int64_t first = 0;  ///< the place of row 0, counted through all images
  std::int64_t rows = 0;
  const void* x = nullptr;
  void* columns = nullptr;
};

/// Gathers columns from images; where a window hangs over the edge they are 0.
template <int bytes>
struct ColumnsBody {
  static constexpr const char* name = "columns of windows";
  static constexpr bool has_barriers = false;
  using Args = ColumnsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    const WindowPlan& w = args.windows;
    const std::int64_t n = args.rows * w.window_rows * w.window_cols * w.channels;
    for (std::int64_t i = thread.index(); i < n; i += thread.count()) {
      const std::int64_t channel = i % w.channels;
      std::int64_t rest = i / w.channels;
      const std::int64_t q = rest % w.window_cols;
      rest /= w.window_cols;
      const std::int64_t p = rest % w.window_rows;
      std::int64_t place = args.first + rest / w.window_rows;
      const std::int64_t column = place % w.out_cols * w.stride_cols - w.pad_left + q * w.dilation_cols;
      place /= w.out_cols;
      const std::int64_t row = place % w.out_rows * w.stride_rows - w.pad_top + p * w.dilation_rows;
      const std::int64_t image = place / w.out_rows;
      Element value{};
      if (row >= 0 && row < w.in_rows && column >= 0 && column < w.in_cols) {
        value = static_cast<const Element*>(
            args.x)[((image * w.in_rows + row) * w.in_cols + column) * w.channels + channel];
      }
      static_cast<Element*>(args.columns)[i] = value;
    }
  }
};

/// The transpose: each element of `images` images becomes the sum of its copies in the columns.
struct ImagesArgs {
  WindowPlan windows;
  std::int64_t images = 0;
  /// [images, out_rows, out_cols, window_rows, window_cols, channels], float where elements have 16 bits
  const void* columns = nullptr;
  void* x = nullptr;
};

template <class T>
struct ImagesBody {
  static constexpr const char* name = "images of columns";
  static constexpr bool has_barriers = false;
  using Args = ImagesArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    const WindowPlan& w = args.windows;
    const C* const columns = static_cast<const C*>(args.columns);
    const std::int64_t n = args.images * w.in_rows * w.in_cols * w.channels;
    for (std::int64_t i = thread.index(); i < n; i += thread.count()) {
      const std::int64_t channel = i % w.channels;
      std::int64_t rest = i / w.channels;
      const std::int64_t column = rest % w.in_cols;
      rest /= w.in_cols;
      const std::int64_t row = rest % w.in_rows, image = rest / w.in_rows;
      C sum(0);
      for (std::int64_t p = 0; p < w.window_rows; ++p) {
        const std::int64_t down = row + w.pad_top - p * w.dilation_rows;
        if (down < 0 || down % w.stride_rows != 0 || down / w.stride_rows >= w.out_rows) continue;
        for (std::int64_t q = 0; q < w.window_cols; ++q) {
          const std::int64_t right = column + w.pad_left - q * w.dilation_cols;
          if (right < 0 || right % w.stride_cols != 0 || right / w.stride_cols >= w.out_cols) continue;
          const std::int64_t place = (image * w.out_rows + down / w.stride_rows) * w.out_cols + right / w.stride_cols;
          sum += columns[((place * w.window_rows + p) * w.window_cols + q) * w.channels + channel];
        }
      }
      static_cast<T*>(args.x)[i] = static_cast<T>(sum);
    }
  }
};

/// Arguments of pooling; dilations are 1.
struct PoolArgs {
  WindowPlan windows;
  std::int64_t batch = 0;
  const void* x = nullptr;                ///< images
  const void* values = nullptr;           ///< one for each place, or one for each element of the images
  const std::int64_t* winners = nullptr;  ///< the element of the images that each place has, or -1
  void* y = nullptr;                      ///< [batch, out_rows, out_cols, channels], or images
};

namespace detail {

/// Part of an image: rows [top, bottom), columns [left, right).
struct WindowBox {
  std::int64_t top, bottom, left, right;

  DFLOW_FN std::int64_t size() const { return (bottom > top ? bottom - top : 0) * (right > left ? right - left : 0); }
};

DFLOW_FN inline std::int64_t later_of(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
DFLOW_FN inline std::int64_t sooner_of(std::int64_t a, std::int64_t b) { return b < a ? b : a; }

/// The part of the image that is under the window at [i, j].
DFLOW_FN inline WindowBox box_at(const WindowPlan& w, std::int64_t i, std::int64_t j) {
  const std::int64_t top = i * w.stride_rows - w.pad_top, left = j * w.stride_cols - w.pad_left;
  return {later_of(top, 0), sooner_of(top + w.window_rows, w.in_rows), later_of(left, 0),
          sooner_of(left + w.window_cols, w.in_cols)};
}

/// The first and the last place, along one dimension, with a window that has the element at `at`.
struct PlaceRange {
  std::int64_t first, last;
};
DFLOW_FN inline PlaceRange places_of(std::int64_t at, std::int64_t pad, std::int64_t window, std::int64_t stride,
                                     std::int64_t places) {
  const std::int64_t shifted = at + pad;
  return {shifted < window ? 0 : (shifted - window) / stride + 1, sooner_of(shifted / stride, places - 1)};
}

/// The place of a window: [image, i, j, channel], element `index` of the places.
struct WindowPlace {
  std::int64_t image, i, j, channel, index;
};

/// The element of the images at [row, column] of the place's image and channel.
DFLOW_FN inline std::int64_t element_of(const WindowPlan& w, const WindowPlace& place, std::int64_t row,
                                        std::int64_t column) {
  return ((place.image * w.in_rows + row) * w.in_cols + column) * w.channels + place.channel;
}

/// Calls body(WindowPlace) for this thread's places.
template <class Thread, class Body>
DFLOW_FN void for_each_place(const Thread& thread, const PoolArgs& args, const Body& body) {
  const WindowPlan& w = args.windows;
  const std::int64_t n = args.batch * w.out_rows * w.out_cols * w.channels;
  for (std::int64_t index = thread.index(); index < n; index += thread.count()) {
    const std::int64_t channel = index % w.channels;
    std::int64_t rest = index / w.channels;
    const std::int64_t j = rest % w.out_cols;
    rest /= w.out_cols;
    body(WindowPlace{rest / w.out_rows, rest % w.out_rows, j, channel, index});
  }
}

/// Calls body(place, box) for each place with a window that has element `index` of the images. The place has the
/// element's channel.
template <class Body>
DFLOW_FN void for_each_window_of(const WindowPlan& w, std::int64_t index, const Body& body) {
  const std::int64_t channel = index % w.channels;
  std::int64_t rest = index / w.channels;
  const std::int64_t column = rest % w.in_cols;
  rest /= w.in_cols;
  const std::int64_t row = rest % w.in_rows, image = rest / w.in_rows;
  const PlaceRange rows = places_of(row, w.pad_top, w.window_rows, w.stride_rows, w.out_rows);
  const PlaceRange columns = places_of(column, w.pad_left, w.window_cols, w.stride_cols, w.out_cols);
  for (std::int64_t i = rows.first; i <= rows.last; ++i) {
    for (std::int64_t j = columns.first; j <= columns.last; ++j) {
      body(((image * w.out_rows + i) * w.out_cols + j) * w.channels + channel, box_at(w, i, j));
    }
  }
}

/// The first maximum of a window, or its first element that is not a number; -1 where it has no element.
template <class T>
DFLOW_FN std::int64_t winner_of(const PoolArgs& args, const WindowPlace& place) {
  using C = WideType<T>;
  const WindowPlan& w = args.windows;
  const WindowBox box = box_at(w, place.i, place.j);
  std::int64_t best = -1;
  C largest(0);
  for (std::int64_t row = box.top; row < box.bottom; ++row) {
    for (std::int64_t column = box.left; column < box.right; ++column) {
      const std::int64_t at = element_of(w, place, row, column);
      const C value = static_cast<C>(static_cast<const T*>(args.x)[at]);
      if (best >= 0 && (largest != largest || value <= largest)) continue;
      best = at;
      largest = value;
    }
  }
  return best;
}

}  // namespace detail

/// y = the largest of each window of x.
template <class T>
struct MaxPoolBody {
  static constexpr const char* name = "max pool";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    detail::for_each_place(thread, args, [&](const detail::WindowPlace& place) {
      const std::int64_t best = detail::winner_of<T>(args, place);
      static_cast<T*>(args.y)[place.index] = best < 0 ? T(0) : static_cast<const T*>(args.x)[best];
    });
  }
};

/// y [out_rows, out_cols] int64: the position of the largest element of each window of x.
template <class T>
struct WinnersBody {
  static constexpr const char* name = "places of maxima";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    detail::for_each_place(thread, args, [&](const detail::WindowPlace& place) {
      static_cast<std::int64_t*>(args.y)[place.index] = detail::winner_of<T>(args, place);
    });
  }
};

/// y, images: each element becomes the sum of the values of the windows that it has won.
template <class T>
struct MaxPoolGradBody {
  static constexpr const char* name = "max pool gradient";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    const WindowPlan& w = args.windows;
    const std::int64_t n = args.batch * w.in_rows * w.in_cols * w.channels;
    for (std::int64_t index = thread.index(); index < n; index += thread.count()) {
      C sum(0);
      detail::for_each_window_of(w, index, [&](std::int64_t place, const detail::WindowBox&) {
        if (args.winners[place] == index) sum += static_cast<C>(static_cast<const T*>(args.values)[place]);
      });
      static_cast<T*>(args.y)[index] = static_cast<T>(sum);
    }
  }
};

/// y: for each window the element of `values`, of the shape of x, at the position of the window's largest element.
template <class T>
struct MaxPoolGradGradBody {
  static constexpr const char* name = "values at maxima";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    detail::for_each_place(thread, args, [&](const detail::WindowPlace& place) {
      const std::int64_t best = detail::winner_of<T>(args, place);
      static_cast<T*>(args.y)[place.index] = best < 0 ? T(0.0f) : static_cast<const T*>(args.values)[best];
    });
  }
};

/// y = the mean of the elements of x under each window.
template <class T>
struct AvgPoolBody {
  static constexpr const char* name = "average pool";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    const WindowPlan& w = args.windows;
    detail::for_each_place(thread, args, [&](const detail::WindowPlace& place) {
      const detail::WindowBox box = detail::box_at(w, place.i, place.j);
      C sum(0);
      for (std::int64_t row = box.top; row < box.bottom; ++row) {
        for (std::int64_t column = box.left; column < box.right; ++column) {
          const std::int64_t at = detail::element_of(w, place, row, column);
          sum += static_cast<C>(static_cast<const T*>(args.x)[at]);
        }
      }
      const std::int64_t size = box.size();
      static_cast<T*>(args.y)[place.index] = size == 0 ? T(0.0f) : static_cast<T>(sum / static_cast<C>(size));
    });
  }
};

/// y, images: each element has its share of the values of the windows that it is part of.
template <class T>
struct AvgPoolGradBody {
  static constexpr const char* name = "average pool gradient";
  static constexpr bool has_barriers = false;
  using Args = PoolArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    const WindowPlan& w = args.windows;
    const std::int64_t n = args.batch * w.in_rows * w.in_cols * w.channels;
    for (std::int64_t index = thread.index(); index < n; index += thread.count()) {
      C sum(0);
      detail::for_each_window_of(w, index, [&](std::int64_t place, const detail::WindowBox& box) {
        sum += static_cast<C>(static_cast<const T*>(args.values)[place]) / static_cast<C>(box.size());
      });
      static_cast<T*>(args.y)[index] = static_cast<T>(sum);
    }
  }
};

namespace detail {

template <class Floats, class Reals>
struct PoolBodiesOf;
template <class... Fs, class... Rs>
struct PoolBodiesOf<TypeList<Fs...>, TypeList<Rs...>> {
  using type =
      concat_t<TypeList<MaxPoolBody<Rs>...>, TypeList<WinnersBody<Fs>, MaxPoolGradBody<Fs>, MaxPoolGradGradBody<Fs>,
                                                      AvgPoolBody<Fs>, AvgPoolGradBody<Fs>>...>;
};

}  // namespace detail

using WindowBodies = TypeList<ColumnsBody<1>, ColumnsBody<2>, ColumnsBody<4>, ColumnsBody<8>, ColumnsBody<16>,
                              ImagesBody<float>, ImagesBody<double>, ImagesBody<Half>, ImagesBody<BFloat16>>;
using PoolBodies = typename detail::PoolBodiesOf<FloatTypes, RealTypes>::type;

}  // namespace dflow::cuda
