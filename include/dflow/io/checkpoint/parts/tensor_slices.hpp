#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/io/proto/proto_reader.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A part of a tensor as TensorFlow's checkpoints name it (TensorSliceProto): for each dimension where it begins and
/// how long it is.
///
/// Thread safety: a value type.
struct TensorSlice {
  static constexpr std::int64_t all = -1;  ///< a length: the whole dimension

  std::vector<std::int64_t> begin, length;

  /// Errors: DataLoss if it is not a slice message, Unimplemented for more than `max_rank` dimensions.
  static TensorSlice parse(ProtoReader message);
  /// The slice that is all of a tensor.
  static TensorSlice whole(int rank);

  /// Its shape as a part of a tensor of shape `whole`. Errors: DataLoss if it reaches past that.
  Shape shape_in(const Shape& whole) const;
  bool is_all_of(const Shape& whole) const { return shape_in(whole) == whole; }
  /// The key of the slice of a tensor in TensorFlow's tables: zero, the name, the rank, begin and length by dimension,
  /// in a code (util/coding/ordered_code) that sorts as they do.
  std::string key(std::string_view tensor_name) const;
};

namespace detail {

/// The shape in a TensorShapeProto. Errors: DataLoss if it is not a shape message or the shape is not known in full,
/// Unimplemented for more than `max_rank` dimensions.
Shape parse_tensor_shape(ProtoReader message);

/// Calls `parse` for a part of a tensor's description. Unimplemented goes to `problem`, so that the other tensors of
/// the checkpoint can be read.
void parse_or_note(Status& problem, FunctionRef<void()> parse);

/// The element type of TensorFlow's number, if dflow has it and `problem` is ok; else `problem` says what is wrong.
DType dtype_or_note(Status& problem, std::uint32_t number);

/// A part of a tensor, where it begins in the whole.
struct TensorPart {
  std::span<const std::int64_t> begin;
  AnyTensor tensor;
};

/// The tensor put together from its parts. Errors: DataLoss unless they cover it, each element once.
AnyTensor assembled(DType dtype, const Shape& whole, std::span<const TensorPart> parts);

}  // namespace detail

}  // namespace dflow
