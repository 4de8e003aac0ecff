#pragma once

#include <dflow/ops/checkpoint/resource_state.hpp>

namespace dflow {

void RandomStreamHandle::infer(InferContext& context) { context.set_output(0, PartialShape::unknown()); }
void ReadResourceState::infer(InferContext&) {}
void AssignResourceState::infer(InferContext&) {}

}  // namespace dflow
