#pragma once

#include <cstdint>

namespace dflow {

/// Sizes of a 2-D convolution: input [batch, in_rows, in_cols, in_channels], filter [filter_rows, filter_cols,
/// filter_channels(), out_channels], output [batch, out_rows(), out_cols(), out_channels]. The channels of the input
/// and of the output lie in `groups` runs of equal length. A run of the output sees the same run of the input alone.
struct Conv2dShape {
  std::int64_t batch = 0, in_rows = 0, in_cols = 0, in_channels = 0;
  std::int64_t filter_rows = 0, filter_cols = 0, out_channels = 0;
  std::int64_t stride_rows = 1, stride_cols = 1;
  std::int64_t dilation_rows = 1, dilation_cols = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t groups = 1;

  /// Channels of the input that a channel of the output sees.
  [[nodiscard]] constexpr std::int64_t filter_channels() const { return in_channels / groups; }

  /// Rows and columns of the output; 0 where the dilated filter is larger than the padded input.
  [[nodiscard]] constexpr std::int64_t out_rows() const {
    return extent(in_rows + pad_top + pad_bottom, (filter_rows - 1) * dilation_rows + 1, stride_rows);
  }
  [[nodiscard]] constexpr std::int64_t out_cols() const {
    return extent(in_cols + pad_left + pad_right, (filter_cols - 1) * dilation_cols + 1, stride_cols);
  }
  friend constexpr bool operator==(const Conv2dShape&, const Conv2dShape&) = default;

 private:
  static constexpr std::int64_t extent(std::int64_t padded, std::int64_t window, std::int64_t stride) {
    return padded < window ? 0 : (padded - window) / stride + 1;
  }
};

}  // namespace dflow
