#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>

namespace dflow {

/// Writes a tensor as the fields of a TensorProto (tensorflow/core/framework/tensor.proto): strings one by one, all
/// other elements as the bytes that they are.
///
/// Errors: InvalidArgument for a tensor whose elements are no numbers, bools or strings.
void write_tensor_proto(ProtoWriter& out, const AnyTensor& tensor);

/// The tensor of a TensorProto. Fewer values than elements repeat the last one, or are zeros if there are none, where
/// that makes at most `max_filled_elements`: memory is otherwise bounded by the bytes that are there.
///
/// Errors: DataLoss with the offset: another element type, extents or a number of values that do not fit.
AnyTensor read_tensor_proto(ProtoReader in);
inline constexpr std::int64_t max_filled_elements = std::int64_t{1} << 20;
/// The same of one of several tensors, which together have at most `elements_left` such elements: counts them down.
AnyTensor read_tensor_proto(ProtoReader in, std::int64_t& elements_left);

/// The same for a shape (TensorShapeProto).
void write_shape_proto(ProtoWriter& out, const PartialShape& shape);

}  // namespace dflow
