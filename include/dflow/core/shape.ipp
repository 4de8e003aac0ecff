#pragma once

#include <dflow/core/shape.hpp>

#include <algorithm>
#include <ostream>

namespace dflow {

std::string detail::dims_to_string(std::span<const std::int64_t> dims) {
  constexpr std::size_t most = 16;
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += ',';
    if (i == most) return text += "...]";
    if (dims[i] == dynamic) {
      text += '?';
    } else {
      text += str_cat(dims[i]);
    }
  }
  return text += "]";
}

namespace detail {

/// With -1 as a number: here it is no unknown dimension but a mistake.
std::string extents_to_string(std::span<const std::int64_t> dims) {
  std::string text = dims_to_string(dims);
  for (std::size_t at = text.find('?'); at != std::string::npos; at = text.find('?')) text.replace(at, 1, "-1");
  return text;
}

[[noreturn]] void throw_bad_shape(std::span<const std::int64_t> dims, std::string_view what) {
  throw_error(Status::invalid_argument(str_cat("shape ", extents_to_string(dims), " ", what)));
}

/// The number of elements where the running product overflowed: a zero may follow.
std::int64_t unusual_count(std::span<const std::int64_t> dims) {
  const std::optional<std::int64_t> count = try_product(dims);
  if (!count) {
    const bool is_negative = std::any_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 0; });
    throw_bad_shape(dims, is_negative ? "has a negative dimension" : "has more than 2^63-1 elements");
  }
  return *count;
}

}  // namespace detail

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(max_rank)) {
    detail::throw_bad_shape(dims, str_cat("has ", dims.size(), " dimensions, more than ", max_rank));
  }
  std::int64_t count = 1;
  bool is_usual = true;
  std::size_t i = 0;
  for (; i < dims.size(); ++i) {
    dims_[i] = dims[i];
    is_usual &= dims[i] >= 0 && !__builtin_mul_overflow(count, dims[i], &count);
  }
  // Zeros behind the rank, so that copies read no uninitialised memory.
  for (; i < static_cast<std::size_t>(max_rank); ++i) dims_[i] = 0;
  num_elements_ = is_usual ? count : detail::unusual_count(dims);
  rank_ = static_cast<std::int32_t>(dims.size());
}

std::int64_t Shape::num_elements(int first, int last) const noexcept {
  assert(first >= 0 && first <= last && last <= rank_);
  std::uint64_t count = 1;
  // Wraps only where another extent is zero, so that the product is not used as a size.
  for (int i = first; i < last; ++i) count *= static_cast<std::uint64_t>(dims_[i]);
  return static_cast<std::int64_t>(count);
}

Shape Shape::with_dim(int i, std::int64_t extent) const {
  assert(i >= 0 && i < rank_);
  std::array<std::int64_t, max_rank> dims{};
  std::copy(begin(), end(), dims.begin());
  dims[static_cast<std::size_t>(i)] = extent;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_)));
}

Shape Shape::inserted(int i, std::int64_t extent) const {
  assert(i >= 0 && i <= rank_);
  std::array<std::int64_t, max_rank + 1> dims{};
  std::copy(begin(), begin() + i, dims.begin());
  dims[static_cast<std::size_t>(i)] = extent;
  std::copy(begin() + i, end(), dims.begin() + i + 1);
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) + 1));
}

Shape Shape::erased(int i) const {
  assert(i >= 0 && i < rank_);
  std::array<std::int64_t, max_rank> dims{};
  std::copy(begin() + i + 1, end(), std::copy(begin(), begin() + i, dims.begin()));
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) - 1));
}

Shape Shape::subshape(int first, int last) const {
  assert(first >= 0 && first <= last && last <= rank_);
  return Shape(dims().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
}

Shape Shape::concatenated(const Shape& tail) const {
  std::array<std::int64_t, std::size_t{2} * max_rank> dims{};
  std::copy(tail.begin(), tail.end(), std::copy(begin(), end(), dims.begin()));
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_ + tail.rank_)));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

std::string Shape::to_string() const { return detail::dims_to_string(dims()); }

std::array<std::int64_t, max_rank> row_major_strides(const Shape& shape) noexcept {
  std::array<std::int64_t, max_rank> strides{};
  std::uint64_t step = 1;
  for (int i = shape.rank(); i-- > 0;) {
    strides[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(shape.dim(i));
  }
  return strides;
}

}  // namespace dflow
