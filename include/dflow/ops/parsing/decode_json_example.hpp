#pragma once

#include <dflow/ops/parsing/parsing_op.hpp>

#include <string>

namespace dflow {

/// Converts each Example in the JSON form of protocol buffers to its serialized bytes, elementwise.
struct DecodeJsonExample : ParsingOp<"DecodeJSONExample"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// texts [d0, ..., dn] to bytes of the same shape, which `parse_example` reads; the features are sorted by name.
/// `example_from_json` says which texts are Examples.
///
/// Errors: InvalidArgument in the step for a text that is no Example. The message names the text and the place in it.
Output<std::string> decode_json_example(const Output<std::string>& texts, const At& at = {});

}  // namespace dflow
