#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>

namespace dflow {

/// Writes a tensor as the fields of a TensorProto (tensorflow/core/framework/tensor.proto): strings one by one, all
/// other elements as their bytes.
///
/// Errors: InvalidArgument for elements that are no numbers, bools or strings.
void write_tensor_proto(ProtoWriter& out, const AnyTensor& tensor);

/// Reads the tensor of a TensorProto. If there are fewer values than elements, the last value is repeated; if there
/// are none, elements are zeros. This fills at most `max_filled_elements`: otherwise the bytes in the message bound
/// the memory.
///
/// Errors: DataLoss with the offset: no element type, extents or a number of values that do not fit. Unimplemented for
/// an element type that dflow lacks, and for more than `max_rank` dimensions.
AnyTensor read_tensor_proto(ProtoReader in);
inline constexpr std::int64_t max_filled_elements = std::int64_t{1} << 20;
/// The same for one of several tensors, which together fill at most `elements_left` elements: counts them down.
AnyTensor read_tensor_proto(ProtoReader in, std::int64_t& elements_left);

/// The same for a shape (TensorShapeProto).
void write_shape_proto(ProtoWriter& out, const PartialShape& shape);

}  // namespace dflow
