#pragma once

#include <dflow/core/partial_shape.hpp>

#include <algorithm>
#include <ostream>

namespace dflow {

PartialShape::PartialShape(const Shape& shape) noexcept : rank_(static_cast<std::int8_t>(shape.rank())) {
  std::copy(shape.begin(), shape.end(), dims_);
}

PartialShape::PartialShape(std::span<const std::int64_t> dims) {
  const auto fail = [&](std::string_view what) {
    throw_error(Status::invalid_argument(str_cat("shape ", detail::dims_to_string(dims), " ", what)));
  };
  if (dims.size() > static_cast<std::size_t>(max_rank)) {
    fail(str_cat("has ", dims.size(), " dimensions, more than ", max_rank));
  }
  std::array<std::int64_t, max_rank> known{};
  std::size_t num_known = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < dynamic) fail("has a negative dimension");
    if (dims[i] != dynamic) known[num_known++] = dims[i];
    dims_[i] = dims[i];
  }
  if (!try_product(std::span<const std::int64_t>(known.data(), num_known))) fail("has more than 2^63-1 elements");
  rank_ = static_cast<std::int8_t>(dims.size());
}

PartialShape PartialShape::unknown() noexcept {
  PartialShape shape;
  shape.rank_ = -1;
  return shape;
}

PartialShape PartialShape::unknown(int rank) {
  if (rank < 0 || rank > max_rank) {
    throw_error(Status::invalid_argument(str_cat("rank ", rank, " is outside [0, ", max_rank, "]")));
  }
  PartialShape shape;
  std::fill_n(shape.dims_, rank, dynamic);
  shape.rank_ = static_cast<std::int8_t>(rank);
  return shape;
}

bool PartialShape::is_fully_defined() const noexcept {
  return has_rank() && std::none_of(dims_, dims_ + rank_, [](std::int64_t dim) { return dim == dynamic; });
}

std::optional<std::int64_t> PartialShape::num_elements() const noexcept {
  if (!is_fully_defined()) return std::nullopt;
  return try_product(dims());
}

Shape PartialShape::to_shape() const {
  if (!is_fully_defined())
    throw_error(Status::invalid_argument(str_cat("shape ", to_string(), " is not fully defined")));
  return Shape(dims());
}

bool PartialShape::is_compatible_with(const PartialShape& other) const noexcept {
  if (!has_rank() || !other.has_rank()) return true;
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] != other.dims_[i] && dims_[i] != dynamic && other.dims_[i] != dynamic) return false;
  }
  return true;
}

PartialShape PartialShape::merged_with(const PartialShape& other) const {
  if (!is_compatible_with(other)) {
    throw_error(Status::invalid_argument(str_cat("shapes ", to_string(), " and ", other.to_string(), " do not agree")));
  }
  if (!has_rank()) return other;
  if (!other.has_rank()) return *this;
  PartialShape merged = *this;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] == dynamic) merged.dims_[i] = other.dims_[i];
  }
  return PartialShape(merged.dims());
}

PartialShape PartialShape::generalized_with(const PartialShape& other) const noexcept {
  if (!has_rank() || rank_ != other.rank_) return unknown();
  PartialShape general = *this;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] != other.dims_[i]) general.dims_[i] = dynamic;
  }
  return general;
}

PartialShape PartialShape::with_dim(int i, std::int64_t extent) const {
  if (!has_rank()) return unknown();
  assert(i >= 0 && i < rank_);
  PartialShape changed = *this;
  changed.dims_[i] = extent;
  return PartialShape(changed.dims());
}

PartialShape PartialShape::inserted(int i, std::int64_t extent) const {
  if (!has_rank()) return unknown();
  assert(i >= 0 && i <= rank_);
  std::array<std::int64_t, max_rank + 1> dims{};
  std::copy(dims_, dims_ + i, dims.begin());
  dims[static_cast<std::size_t>(i)] = extent;
  std::copy(dims_ + i, dims_ + rank_, dims.begin() + i + 1);
  return PartialShape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) + 1));
}

PartialShape PartialShape::erased(int i) const {
  if (!has_rank()) return unknown();
  assert(i >= 0 && i < rank_);
  std::array<std::int64_t, max_rank> dims{};
  std::copy(dims_ + i + 1, dims_ + rank_, std::copy(dims_, dims_ + i, dims.begin()));
  return PartialShape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) - 1));
}

PartialShape PartialShape::subshape(int first, int last) const {
  if (!has_rank()) return unknown();
  assert(first >= 0 && first <= last && last <= rank_);
  return PartialShape(dims().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
}

PartialShape PartialShape::concatenated(const PartialShape& tail) const {
  if (!has_rank() || !tail.has_rank()) return unknown();
  std::array<std::int64_t, std::size_t{2} * max_rank> dims{};
  std::copy(tail.dims_, tail.dims_ + tail.rank_, std::copy(dims_, dims_ + rank_, dims.begin()));
  return PartialShape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_ + tail.rank_)));
}

std::ostream& operator<<(std::ostream& out, const PartialShape& shape) { return out << shape.to_string(); }

std::string PartialShape::to_string() const {
  return has_rank() ? detail::dims_to_string(dims()) : std::string("<unknown>");
}

}  // namespace dflow
