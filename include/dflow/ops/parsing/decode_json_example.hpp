#pragma once

#include <dflow/ops/parsing/parsing_op.hpp>

#include <string>

namespace dflow {

/// Each Example in the JSON form of protocol buffers as the bytes that stand for it, elementwise.
struct DecodeJsonExample : ParsingOp<"DecodeJSONExample"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// texts [d0, ..., dn] to bytes of the same shape, which `parse_example` reads; the features are sorted by name.
/// `example_from_json` says which texts are Examples.
///
/// Errors: InvalidArgument in the step for a text that is none; says which and where in it.
Output<std::string> decode_json_example(const Output<std::string>& texts, const At& at = {});

}  // namespace dflow
