#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/any_tensor.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dflow {

/// A part of a tensor: elements [begin, begin + extent) of the whole.
///
/// Thread safety: a value type.
struct CheckpointSlice {
  Shape whole;
  std::vector<std::int64_t> begin;  ///< one per dimension
  Shape extent;

  /// TensorFlow's form: the whole's dimensions, then a range for each, "start,length" or "-" for all of it, joined by
  /// ":". "4 3 0,2:-" is [0, 2) of the 4 rows. Errors: InvalidArgument that quotes the text.
  static CheckpointSlice parse(std::string_view text);

  /// Whether it has elements in common with a part of the same whole.
  bool meets(std::span<const std::int64_t> part_begin, const Shape& part_extent) const;
  /// Copies the common elements from the part to their places in `into`, of shape `extent`.
  void copy_common(std::span<const std::int64_t> part_begin, const AnyTensor& part, AnyTensor& into) const;
  /// The part, copied. Errors: InvalidArgument if the tensor has not the shape of the whole.
  AnyTensor cut_from(const AnyTensor& tensor) const;
};

namespace detail {

/// Errors: InvalidArgument, naming the tensor, for slices of another shape, or that are none.
void require_slices_of(std::string_view name, const Shape& whole, std::span<const CheckpointSlice> slices);

}  // namespace detail

}  // namespace dflow
