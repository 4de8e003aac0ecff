#pragma once

#include <dflow/base/philox.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/train/minibatches.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

namespace dflow::train {

Minibatches::Minibatches(std::int64_t rows, std::int64_t batch, std::uint64_t seed) : batch_(batch), seed_(seed) {
  if (batch < 1 || batch > rows) {
    throw_error(Status::invalid_argument(str_cat("a minibatch of ", batch, " cannot be drawn from ", rows, " rows")));
  }
  if (static_cast<std::uint64_t>(rows) > order_.max_size()) {
    throw_error(
        Status::resource_exhausted(str_cat("minibatches of ", rows, " rows: their order is larger than memory")));
  }
  order_.resize(static_cast<std::size_t>(rows));
  std::iota(order_.begin(), order_.end(), 0);
}

std::span<const std::int64_t> Minibatches::next() {
  if (order_.empty()) throw_error(Status::failed_precondition("these minibatches were moved from"));
  if (position_ == 0) shuffle();
  const std::span<const std::int64_t> rows(order_.data() + position_ * batch_, static_cast<std::size_t>(batch_));
  position_ = (position_ + 1) % per_epoch();
  return rows;
}

/// Fisher and Yates; the bias of 2^-32 per row that the product leaves is of no account here.
void Minibatches::shuffle() {
  PhiloxStream random = PhiloxStream::from_seeds(seed_, ++epoch_);
  for (std::size_t i = order_.size(); i > 1; --i) {
    const std::uint64_t pick = (static_cast<std::uint64_t>(random.next()[0]) * i) >> 32;
    std::swap(order_[i - 1], order_[pick]);
  }
}

AnyTensor any_rows_of(const AnyTensor& tensor, std::span<const std::int64_t> rows) {
  if (tensor.rank() < 1 || !is_element(tensor.dtype())) {
    throw_error(Status::invalid_argument(str_cat("rows_of: needs elements of rank 1 or more, got ",
                                                 dtype_name(tensor.dtype()), tensor.shape().to_string())));
  }
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < tensor.dim(0)) continue;
    throw_error(Status::invalid_argument(str_cat("rows_of: row ", row, " is outside [0, ", tensor.dim(0), ")")));
  }
  AnyTensor result(tensor.dtype(), tensor.shape().with_dim(0, static_cast<std::int64_t>(rows.size())));
  if (result.num_elements() == 0) return result;
  if (tensor.dtype() == DType::string) {
    const std::int64_t length = tensor.num_elements() / tensor.dim(0);
    std::string* to = Tensor<std::string>::of(result).data();
    for (const std::int64_t row : rows) {
      to = std::copy_n(Tensor<std::string>::of(tensor).data() + row * length, length, to);
    }
    return result;
  }
  const std::size_t row_bytes = tensor.bytes() / static_cast<std::size_t>(tensor.dim(0));
  const auto* from = static_cast<const std::byte*>(tensor.raw_data());
  auto* to = static_cast<std::byte*>(result.raw_data());
  for (const std::int64_t row : rows) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return result;
}

}  // namespace dflow::train
