#pragma once

#include <dflow/ops/parsing/decode_json_example.hpp>

namespace dflow {

void DecodeJsonExample::infer(InferContext& context) { context.set_output(0, context.input(0)); }

Output<std::string> decode_json_example(const Output<std::string>& texts, const At& at) {
  return Output<std::string>::unchecked(build<DecodeJsonExample>({texts}, {}, at));
}

}  // namespace dflow
