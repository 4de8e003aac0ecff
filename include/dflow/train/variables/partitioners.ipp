#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/train/variables/partitioners.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace dflow {

namespace detail {

/// One part along each dimension but `axis`, which is counted from the end where it is below 0.
template <class Count>
std::vector<std::int64_t> parts_along(std::string_view name, int axis, const Shape& shape, const Count& count) {
  if (axis >= shape.rank() || axis < -shape.rank()) {
    throw_error(
        Status::invalid_argument(str_cat(name, ": a variable of shape ", shape.to_string(), " has no axis ", axis)));
  }
  const int along = axis < 0 ? axis + shape.rank() : axis;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(shape.rank()), 1);
  parts[static_cast<std::size_t>(along)] =
      std::clamp<std::int64_t>(count(along), 1, std::max<std::int64_t>(shape[along], 1));
  return parts;
}

std::int64_t element_bytes(DType dtype, std::int64_t bytes_per_string) {
  return dtype == DType::string ? bytes_per_string : static_cast<std::int64_t>(size_of(dtype));
}

void require_positive(std::string_view name, std::string_view what, std::int64_t value) {
  if (value < 1)
    throw_error(Status::invalid_argument(str_cat(name, ": ", what, " is ", value, ", and must be 1 or more")));
}

}  // namespace detail

Partitioner fixed_size_partitioner(std::int64_t num_parts, int axis) {
  constexpr std::string_view name = "fixed_size_partitioner";
  detail::require_positive(name, "num_parts", num_parts);
  return
      [=](const Shape& shape, DType) { return detail::parts_along(name, axis, shape, [&](int) { return num_parts; }); };
}

Partitioner variable_axis_size_partitioner(std::int64_t max_part_bytes, const VariableAxisSizeOptions& options) {
  constexpr std::string_view name = "variable_axis_size_partitioner";
  detail::require_positive(name, "max_part_bytes", max_part_bytes);
  detail::require_positive(name, "bytes_per_string", options.bytes_per_string);
  if (options.max_parts < 0) {
    throw_error(
        Status::invalid_argument(str_cat(name, ": max_parts is ", options.max_parts, ", and must not be below 0")));
  }
  return [=](const Shape& shape, DType dtype) {
    return detail::parts_along(name, options.axis, shape, [&](int axis) -> std::int64_t {
      const std::int64_t length = shape[axis];
      if (shape.num_elements() == 0) return 1;
      const std::int64_t index_elements = shape.num_elements() / length;
      const double index_bytes = static_cast<double>(index_elements) *
                                 static_cast<double>(detail::element_bytes(dtype, options.bytes_per_string));
      const double fit = static_cast<double>(max_part_bytes) / index_bytes;
      const std::int64_t each =
          fit >= static_cast<double>(length) ? length : std::max<std::int64_t>(1, static_cast<std::int64_t>(fit));
      const std::int64_t parts = (length + each - 1) / each;
      return options.max_parts == 0 ? parts : std::min(parts, options.max_parts);
    });
  };
}

Partitioner min_max_variable_partitioner(const MinMaxVariableOptions& options) {
  constexpr std::string_view name = "min_max_variable_partitioner";
  detail::require_positive(name, "max_parts", options.max_parts);
  detail::require_positive(name, "min_part_bytes", options.min_part_bytes);
  detail::require_positive(name, "bytes_per_string", options.bytes_per_string);
  return [=](const Shape& shape, DType dtype) {
    return detail::parts_along(name, options.axis, shape, [&](int) {
      const double bytes = static_cast<double>(shape.num_elements()) *
                           static_cast<double>(detail::element_bytes(dtype, options.bytes_per_string));
      const double parts = std::ceil(bytes / static_cast<double>(options.min_part_bytes));
      return static_cast<std::int64_t>(std::min(parts, static_cast<double>(options.max_parts)));
    });
  };
}

}  // namespace dflow
