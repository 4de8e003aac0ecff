#pragma once

#include <dflow/graph/step_graph.hpp>

namespace dflow {

/// Puts one node in the place of each connected part of a step's graph that passes tensors on alive or dead: Switches,
/// Merges, frames, what lies between them, calls before them whose results may be dead, and what waits by a control
/// edge for something that may be dead, or calls what is on several devices with it. It calls that part, on the device
/// of its first node. What else reads what may be dead is passed over by the step.
///
/// A part with nodes that must be on other devices than its first one becomes calls instead (`raise_frames`), and so
/// does every part that can, if the caller says that it `raises`.
///
/// Errors: InvalidArgument for fetches, feeds and targets inside of a frame; those of `lay_out_frames`; Unimplemented,
/// naming such a node, for a part on several devices that does not have the form of branches and loops.
void form_frames(StepGraph& step, bool raises = false);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/frames.ipp>
#endif
