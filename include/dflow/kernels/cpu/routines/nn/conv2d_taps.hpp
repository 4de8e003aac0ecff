#pragma once

#include <dflow/kernels/shared/conv2d_shape.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow::cpu {

/// The taps of a filter that some window has on its image. If the dilation is as large as the image, many taps lie on
/// padding alone, and the padding would have to be as large as the dilation. A convolution of the other taps is the
/// same.
class UsedTaps {
 public:
  explicit UsedTaps(const Conv2dShape& s)
      : all_(s),
        rows_(used({s.in_rows, s.out_rows(), s.filter_rows, s.stride_rows, s.dilation_rows, s.pad_top})),
        cols_(used({s.in_cols, s.out_cols(), s.filter_cols, s.stride_cols, s.dilation_cols, s.pad_left})) {}

  [[nodiscard]] bool are_all() const { return rows_.count == all_.filter_rows && cols_.count == all_.filter_cols; }
  [[nodiscard]] bool are_none() const { return rows_.count == 0 || cols_.count == 0; }
  [[nodiscard]] std::int64_t size() const { return rows_.count * cols_.count * tap_size(); }

  /// The convolution of the used taps alone, which `pick` gives. If there are none, it has no channels.
  [[nodiscard]] Conv2dShape shape() const {
    Conv2dShape s = all_;
    const Run one{0, 1};
    const Run rows = are_none() ? one : rows_, cols = are_none() ? one : cols_;
    if (are_none()) s.in_channels = 0, s.groups = 1;
    s.filter_rows = rows.count;
    s.filter_cols = cols.count;
    s.pad_top = all_.pad_top - rows.first * all_.dilation_rows;
    s.pad_left = all_.pad_left - cols.first * all_.dilation_cols;
    if (s.filter_rows == 1) s.dilation_rows = 1;
    if (s.filter_cols == 1) s.dilation_cols = 1;
    // As much after the image as gives the output its extents.
    s.pad_bottom = padded(all_.out_rows(), s.stride_rows, s.filter_rows, s.dilation_rows) - s.in_rows - s.pad_top;
    s.pad_right = padded(all_.out_cols(), s.stride_cols, s.filter_cols, s.dilation_cols) - s.in_cols - s.pad_left;
    return s;
  }

  template <class T>
  void pick(const T* filter, T* taps) const {
    for_each_row([&](std::int64_t in_filter, std::int64_t in_taps, std::int64_t n) {
      std::copy_n(filter + in_filter, n, taps + in_taps);
    });
  }
  /// The unused taps become 0.
  template <class T>
  void place(const T* taps, T* filter) const {
    std::fill_n(filter, all_.filter_rows * all_.filter_cols * tap_size(), T(0.0f));
    for_each_row([&](std::int64_t in_filter, std::int64_t in_taps, std::int64_t n) {
      std::copy_n(taps + in_taps, n, filter + in_filter);
    });
  }

 private:
  struct Run {
    std::int64_t first, count;
  };
  struct Dimension {
    std::int64_t in, out, taps, stride, dilation, pad;
  };

  /// Tap t reads `out` elements, from t dilation - pad on, a stride apart.
  static Run used(const Dimension& d) {
    if (d.dilation == 1 || d.out == 0) return {0, d.taps};
    const std::int64_t first = std::max<std::int64_t>(0, quotient_up(d.pad - (d.out - 1) * d.stride, d.dilation));
    const std::int64_t end = std::min(d.taps, quotient_up(d.in + d.pad, d.dilation));
    return {first, std::max<std::int64_t>(0, end - first)};
  }
  static std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return a > 0 ? (a - 1) / b + 1 : a / b; }
  static std::int64_t padded(std::int64_t out, std::int64_t stride, std::int64_t taps, std::int64_t dilation) {
    return (out - 1) * stride + (taps - 1) * dilation + 1;
  }
  [[nodiscard]] std::int64_t tap_size() const { return all_.filter_channels() * all_.out_channels; }
  template <class F>
  void for_each_row(F&& f) const {
    if (are_none()) return;
    const std::int64_t n = cols_.count * tap_size();
    for (std::int64_t r = 0; r < rows_.count; ++r) {
      f(((rows_.first + r) * all_.filter_cols + cols_.first) * tap_size(), r * n, n);
    }
  }

  Conv2dShape all_;
  Run rows_, cols_;
};

}  // namespace dflow::cpu
