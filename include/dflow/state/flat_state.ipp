#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/flat_state.hpp>

#include <algorithm>
#include <cstring>

namespace dflow::detail {

void copy_elements(const AnyTensor& from, std::int64_t begin, std::int64_t count, AnyTensor& to, std::int64_t at) {
  if (count == 0) return;
  if (from.dtype() == DType::string) {
    std::copy_n(Tensor<std::string>::of(from).data() + begin, count, Tensor<std::string>::of(to).data() + at);
    return;
  }
  const std::size_t size = size_of(from.dtype());
  std::memcpy(static_cast<char*>(to.raw_data()) + static_cast<std::size_t>(at) * size,
              static_cast<const char*>(from.raw_data()) + static_cast<std::size_t>(begin) * size,
              static_cast<std::size_t>(count) * size);
}

AnyTensor flattened(DType dtype, std::span<const AnyTensor> tensors) {
  std::int64_t size = 0;
  for (const AnyTensor& tensor : tensors) size += tensor.num_elements();
  AnyTensor flat(dtype, Shape{size});
  std::int64_t next = 0;
  for (const AnyTensor& tensor : tensors) {
    copy_elements(tensor, 0, tensor.num_elements(), flat, next);
    next += tensor.num_elements();
  }
  return flat;
}

FlatState::FlatState(std::string of, std::span<const AnyTensor> state, std::span<const DType> dtypes)
    : of_(std::move(of)) {
  if (state.size() != dtypes.size() + 1) {
    fail(str_cat("it has ", state.size(), " tensors, wanted ", dtypes.size() + 1));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    const DType wanted = i == 0 ? DType::int64 : dtypes[i - 1];
    if (state[i].dtype() == wanted && state[i].rank() == 1) continue;
    fail(str_cat("tensor ", i, " is ", dtype_name(state[i].dtype()), state[i].shape().to_string(), ", wanted ",
                 dtype_name(wanted), " [n]"));
  }
  numbers_ = state[0].span<std::int64_t>();
  for (const AnyTensor& tensor : state.subspan(1)) flat_.push_back({tensor, 0});
}

void FlatState::fail(std::string_view why) const {
  throw_error(Status::invalid_argument(str_cat("what ", of_, " is to be restored from is no state of it: ", why)));
}

std::int64_t FlatState::number(std::int64_t least, std::int64_t most) {
  if (numbers_.empty()) fail("it is too short");
  const std::int64_t number = numbers_.front();
  if (number < least || number > most) fail(str_cat(number, " is outside [", least, ", ", most, "]"));
  numbers_ = numbers_.subspan(1);
  return number;
}

Shape FlatState::shape() {
  const auto rank = static_cast<std::size_t>(number(0, max_rank));
  if (numbers_.size() < rank) fail("it is too short");
  const Shape shape(numbers_.first(rank));
  numbers_ = numbers_.subspan(rank);
  return shape;
}

AnyTensor FlatState::tensor(std::size_t i, const Shape& shape) {
  Flat& flat = flat_[i];
  if (shape.num_elements() > flat.tensor.num_elements() - flat.next) {
    fail(str_cat("tensor ", i + 1, " has too few elements"));
  }
  AnyTensor tensor(flat.tensor.dtype(), shape);
  copy_elements(flat.tensor, flat.next, shape.num_elements(), tensor, 0);
  flat.next += shape.num_elements();
  return tensor;
}

void FlatState::end() const {
  bool is_end = numbers_.empty();
  for (const Flat& flat : flat_) is_end &= flat.next == flat.tensor.num_elements();
  if (!is_end) fail("it is too long");
}

void put_shape(std::vector<std::int64_t>& numbers, const Shape& shape) {
  numbers.push_back(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) numbers.push_back(shape.dim(i));
}

AnyTensor numbers_tensor(const std::vector<std::int64_t>& numbers) {
  return Tensor<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

}  // namespace dflow::detail
