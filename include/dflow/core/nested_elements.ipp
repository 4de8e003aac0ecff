#pragma once

#include <dflow/core/nested_elements.hpp>

namespace dflow::detail {

Status ragged_elements(std::size_t position, const Shape& shape, const Shape& first) {
  return Status::invalid_argument(str_cat(
      "braces in braces are rows of one shape, but row ", position, " has shape ", shape.to_string(), " and row 0 ",
      first.to_string(), "; a shape and its elements are two arguments: Tensor<T>({2, 3}, {1, 2, 3, 4, 5, 6})"));
}

Status element_out_of_range(std::string_view dtype) {
  return Status::invalid_argument(str_cat("an element is no number that ", dtype, " can hold"));
}

}  // namespace dflow::detail
