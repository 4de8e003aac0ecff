#pragma once

#include <dflow/graph/step_graph.hpp>

namespace dflow {

/// Puts the raw form, Switches, Merges and frames, in the place of the calls, branches and loops of a step whose bodies
/// are attached, and of those in these. The iterations of a loop may then overlap, as many as its
/// `parallel_iterations`, unless something in it keeps or changes state.
///
/// What chooses among several bodies by number, and branches and loops whose values a gradient keeps, stay as they are;
/// what their bodies call is lowered, and `raises` says what becomes of it (`form_frames`).
void lower_calls(StepGraph& step, bool raises = false);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/lower_calls.ipp>
#endif
