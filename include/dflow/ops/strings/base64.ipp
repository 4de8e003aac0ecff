#pragma once

#include <dflow/ops/strings/base64.hpp>

namespace dflow {

DFLOW_INLINE void EncodeBase64::infer(InferContext& context) { context.set_output(0, context.input(0)); }
DFLOW_INLINE void DecodeBase64::infer(InferContext& context) { context.set_output(0, context.input(0)); }

}  // namespace dflow
