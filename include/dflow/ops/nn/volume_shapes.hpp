#pragma once

/// Checks of builders that work on sequences and volumes.

#include <dflow/ops/array/block_shapes.hpp>
#include <dflow/ops/nn/window.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow::detail {

inline constexpr std::array<std::string_view, 3> volume_dimension{"planes", "rows", "columns"};

/// Fails unless `values` (the attribute `name`) are 1, `num_dims` positive numbers below 2^31, and 1.
inline void check_volume_window(const BlockShapes& shapes, std::string_view name,
                                const std::vector<std::int64_t>& values, std::size_t num_dims) {
  if (values.size() != num_dims + 2)
    shapes.fail(str_cat(name, " must have ", num_dims + 2, " elements, got ", values.size()));
  if (values.front() != 1 || values.back() != 1) shapes.fail(str_cat(name, " over batch and channels must be 1"));
  for (const std::int64_t value : values) {
    if (value < 1 || value >= std::int64_t{1} << 31) {
      shapes.fail(str_cat(name, " must be positive and less than 2^31, got ", value));
    }
  }
}

/// Fails if a window without padding is larger than the input.
inline void check_window_fits(const BlockShapes& shapes, std::string_view dimension, std::int64_t input,
                              std::int64_t window, Padding padding) {
  if (padding != Padding::valid || input == dynamic || window == dynamic || window <= input) return;
  shapes.fail(
      str_cat("the window's ", window, " ", dimension, " do not fit into the input's ", input, " without padding"));
}

}  // namespace dflow::detail
