#pragma once

#include <dflow/io/records/example.hpp>

#include <string_view>

namespace dflow {

/// The Example that a text in the JSON form of protocol buffers stands for
/// (protobuf.dev/programming-guides/proto3/#json):
///
///     {"features": {"feature": {"age": {"int64List": {"value": [29, "30"]}},
///                               "name": {"bytesList": {"value": ["base64=="]}},
///                               "size": {"floatList": {"value": [1.5, "NaN"]}}}}}
///
/// Names may be written as in the .proto file ("int64_list"), numbers in quotes, bytes in either base64; `null` stands
/// for what is not there. Beyond that it is the JSON of RFC 8259. Memory is as much as the values.
///
/// Errors: InvalidArgument, with the offset, for what is no JSON or no Example, an integer or float out of range, a
/// feature that is named twice or has two lists.
Example example_from_json(std::string_view text);

}  // namespace dflow
