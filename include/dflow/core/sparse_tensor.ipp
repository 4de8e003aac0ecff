#pragma once

#include <dflow/core/sparse_tensor.hpp>

#include <cstddef>

namespace dflow::detail {

void check_sparse_tensor(const Tensor<std::int64_t>& indices, const AnyTensor& values,
                         const Tensor<std::int64_t>& dense_shape) {
  const auto reject = [&](const std::string& why) {
    throw_error(Status::invalid_argument(str_cat("a sparse tensor of indices ", indices.shape().to_string(),
                                                 ", values ", values.shape().to_string(), " and dense_shape ",
                                                 dense_shape.shape().to_string(), ": ", why)));
  };
  if (!indices.is_initialized() || !values.is_initialized() || !dense_shape.is_initialized()) {
    reject("a part is uninitialised");
  }
  if (indices.rank() != 2 || values.rank() != 1 || dense_shape.rank() != 1 || indices.dim(0) != values.dim(0) ||
      indices.dim(1) != dense_shape.dim(0)) {
    reject("indices are [n, rank], values [n] and dense_shape [rank]");
  }
  const std::span<const std::int64_t> all = indices.span(), extents = dense_shape.span();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 0) reject(str_cat("dense_shape[", d, "] = ", extents[d], " is negative"));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t d = i % extents.size();
    if (all[i] >= 0 && all[i] < extents[d]) continue;
    reject(str_cat("indices[", i / extents.size(), ",", d, "] = ", all[i], " is outside [0, ", extents[d], ")"));
  }
}

Tensor<std::int64_t> extents_of(const Shape& shape) {
  return Tensor<std::int64_t>({static_cast<std::int64_t>(shape.rank())}, shape.dims());
}

}  // namespace dflow::detail
