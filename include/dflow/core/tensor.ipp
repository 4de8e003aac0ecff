#pragma once

#include <dflow/core/tensor.hpp>

namespace dflow {

void detail::throw_wrong_count(const Shape& shape, std::size_t count) {
  throw_error(Status::invalid_argument(
      str_cat("shape ", shape.to_string(), " has ", shape.num_elements(), " elements, ", count, " values were given")));
}

void detail::throw_not_scalar(const Shape& shape) {
  throw_error(Status::invalid_argument(str_cat("a tensor of shape ", shape.to_string(), " is not one element")));
}

void detail::throw_wrong_rank(const Shape& shape, int wanted) {
  throw_error(
      Status::invalid_argument(str_cat("a tensor of shape ", shape.to_string(), " has no view of rank ", wanted)));
}

}  // namespace dflow
