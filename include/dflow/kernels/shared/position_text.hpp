#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dflow::detail {

/// The error text of CheckNumerics.
inline std::string not_finite_text(std::string_view message, bool has_nan, bool has_inf) {
  return str_cat(message, ": the tensor holds ", has_nan ? "NaN" : "", has_nan && has_inf ? " and " : "",
                 has_inf ? "Inf" : "");
}

/// "[1,4]": the index of element `position` of a tensor of that shape.
inline std::string position_to_string(std::int64_t position, const Shape& shape) {
  const auto strides = row_major_strides(shape);
  std::array<std::int64_t, max_rank> index{};
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    index[at] = position / strides[at];
    position %= strides[at];
  }
  return dims_to_string({index.data(), static_cast<std::size_t>(shape.rank())});
}

/// The error text for a wrong index of a gather.
inline std::string bad_gather_index(std::int64_t position, const Shape& indices, std::int64_t index,
                                    const Shape& params) {
  return "indices" + (indices.rank() == 0 ? std::string() : position_to_string(position, indices)) + " = " +
         std::to_string(index) + " is outside [0, " + std::to_string(params.dim(0)) + "), the rows of params " +
         params.to_string();
}

}  // namespace dflow::detail
