#pragma once

#include <dflow/core/broadcast.hpp>

#include <algorithm>

namespace dflow {

std::optional<PartialShape> broadcast_shapes(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, max_rank> dims{};
  for (int i = 0; i < rank; ++i) {
    const int in_a = i - (rank - a.rank());
    const int in_b = i - (rank - b.rank());
    const std::int64_t x = in_a < 0 ? 1 : a.dim(in_a);
    const std::int64_t y = in_b < 0 ? 1 : b.dim(in_b);
    std::int64_t& both = dims[static_cast<std::size_t>(i)];
    if (x == y || y == 1) {
      both = x;
    } else if (x == 1) {
      both = y;
    } else if (x == dynamic) {
      both = y;
    } else if (y == dynamic) {
      both = x;
    } else {
      return std::nullopt;
    }
  }
  return PartialShape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const std::optional<PartialShape> both = broadcast_shapes(PartialShape(a), PartialShape(b));
  if (!both) return std::nullopt;
  return both->to_shape();
}

std::array<std::int64_t, max_rank> broadcast_strides(const Shape& from, const Shape& to) noexcept {
  const std::array<std::int64_t, max_rank> dense = row_major_strides(from);
  std::array<std::int64_t, max_rank> strides{};
  const int missing = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i) {
    assert(from.dim(i) == 1 || from.dim(i) == to.dim(i + missing));
    if (from.dim(i) != 1) strides[static_cast<std::size_t>(i + missing)] = dense[static_cast<std::size_t>(i)];
  }
  return strides;
}

}  // namespace dflow
