#pragma once

#include <dflow/io/records/example.hpp>

#include <string_view>

namespace dflow {

/// Parses an Example from the JSON form of protocol buffers (protobuf.dev/programming-guides/proto3/#json):
///
///     {"features": {"feature": {"age": {"int64List": {"value": [29, "30"]}},
///                               "name": {"bytesList": {"value": ["base64=="]}},
///                               "size": {"floatList": {"value": [1.5, "NaN"]}}}}}
///
/// Names may be written as in the .proto file ("int64_list"), numbers in quotes, bytes in either base64; `null` stands
/// for a missing value. Otherwise the text follows the JSON of RFC 8259. Memory is as much as the values.
///
/// Errors: InvalidArgument, with the offset, if the text is no JSON or no Example, an integer or float is out of
/// range, or a feature is named twice or has two lists.
Example example_from_json(std::string_view text);

}  // namespace dflow
