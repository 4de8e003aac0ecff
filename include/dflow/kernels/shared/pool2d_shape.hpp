#pragma once

#include <cstdint>

namespace dflow {

/// Sizes of 2-D pooling: input [batch, in_rows, in_cols, channels], output [batch, out_rows(), out_cols(), channels].
struct Pool2dShape {
  std::int64_t batch = 0, in_rows = 0, in_cols = 0, channels = 0;
  std::int64_t window_rows = 1, window_cols = 1;
  std::int64_t stride_rows = 1, stride_cols = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  [[nodiscard]] constexpr std::int64_t out_rows() const {
    return extent(in_rows + pad_top + pad_bottom, window_rows, stride_rows);
  }
  [[nodiscard]] constexpr std::int64_t out_cols() const {
    return extent(in_cols + pad_left + pad_right, window_cols, stride_cols);
  }
  friend constexpr bool operator==(const Pool2dShape&, const Pool2dShape&) = default;

 private:
  static constexpr std::int64_t extent(std::int64_t padded, std::int64_t window, std::int64_t stride) {
    return padded < window ? 0 : (padded - window) / stride + 1;
  }
};

}  // namespace dflow
