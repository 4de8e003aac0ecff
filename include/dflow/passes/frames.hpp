#pragma once

#include <dflow/graph/step_graph.hpp>

namespace dflow {

/// Puts one node in the place of each connected part of a step's graph that passes tensors on alive or dead: Switches,
/// Merges, frames, what lies between them, and what waits by a control edge for something that may be dead. It calls
/// that part, on the device of its first node. What else reads what may be dead is passed over by the step.
///
/// Errors: InvalidArgument for fetches, feeds and targets inside of a frame; those of `lay_out_frames`.
void form_frames(StepGraph& step);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/frames.ipp>
#endif
