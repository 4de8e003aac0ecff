#pragma once

#include <dflow/core/partial_shape.hpp>

#include <array>
#include <optional>

namespace dflow {

/// The shape of an elementwise result by NumPy's rule. Dimensions are matched from the last one backwards. Missing
/// ones count as 1, and each pair must be equal or hold a 1. Nothing if the shapes do not broadcast.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);

/// As far as it is known: `dynamic` against an extent above 1 gives that extent, since nothing else would fit.
std::optional<PartialShape> broadcast_shapes(const PartialShape& a, const PartialShape& b);

/// Steps through a dense tensor of shape `from` as it is read in shape `to`, in elements: 0 along the dimensions that
/// are repeated. `from` must broadcast to `to`. Entries past the rank of `to` are 0.
std::array<std::int64_t, max_rank> broadcast_strides(const Shape& from, const Shape& to) noexcept;

}  // namespace dflow
