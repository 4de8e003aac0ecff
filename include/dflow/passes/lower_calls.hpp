#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/passes/frames.hpp>

namespace dflow {

/// Puts the raw form, Switches, Merges and frames, in the place of the calls, branches and loops of a step whose bodies
/// are attached, and of those in these. The iterations of a loop may then overlap, as many as its
/// `parallel_iterations`, unless something in it keeps or changes state.
///
/// What a gradient keeps of a loop's iterations are variables of the frame. Functions that call themselves stay calls;
/// so does what is on a device with a memory of its own; that of which a gradient keeps something, where it is on
/// several devices, a branch that makes handles, or a body in the raw form; and so does what would become more than
/// 2^14 nodes, or the step more than 2^20. What their bodies call is lowered, and `raises` says what becomes of it
/// (`form_frames`).
void lower_calls(StepGraph& step, const Raises& raises = {});

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/lower_calls.ipp>
#endif
