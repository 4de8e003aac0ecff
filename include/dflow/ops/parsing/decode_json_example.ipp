#pragma once

#include <dflow/ops/parsing/decode_json_example.hpp>

namespace dflow {

DFLOW_INLINE void DecodeJsonExample::infer(InferContext& context) { context.set_output(0, context.input(0)); }

}  // namespace dflow
