#pragma once

#include <dflow/ops/parsing/decode_json_example.hpp>

namespace dflow {

DFLOW_INLINE void DecodeJsonExample::infer(InferContext& context) { context.set_output(0, context.input(0)); }

DFLOW_INLINE Output<std::string> decode_json_example(const Output<std::string>& texts, const At& at) {
  return Output<std::string>::unchecked(build<DecodeJsonExample>({texts}, {}, at));
}

}  // namespace dflow
