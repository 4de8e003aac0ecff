#pragma once

#include <dflow/ops/checkpoint/resource_state.hpp>

namespace dflow {

DFLOW_INLINE void RandomStreamHandle::infer(InferContext& context) { context.set_output(0, PartialShape::unknown()); }
DFLOW_INLINE void ReadResourceState::infer(InferContext&) {}
DFLOW_INLINE void AssignResourceState::infer(InferContext&) {}

}  // namespace dflow
