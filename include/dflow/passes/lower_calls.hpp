#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/passes/frames.hpp>

#include <cstddef>

namespace dflow {

/// Of the bodies of a step together, and of what lowering their calls makes of them.
inline constexpr std::size_t max_body_nodes = std::size_t{1} << 20;

/// Puts the raw form, Switches, Merges and frames, in the place of the calls, branches and loops of a step whose bodies
/// are attached, and of those in these. The iterations of a loop may then overlap, as many as its
/// `parallel_iterations`, unless something in it keeps or changes state.
///
/// What a gradient keeps of a loop's iterations are variables of the frame. Functions that call themselves stay calls;
/// so does what is on a device with a memory of its own; that of which a gradient keeps something, where it is on
/// several devices, a branch that makes handles, or a body in the raw form; a choice among more than 256 bodies; and
/// so does what would become more than 2^14 nodes, or the step and all bodies together more than `max_nodes`. What
/// their bodies call is lowered, and `raises` says what becomes of it (`form_frames`).
void lower_calls(StepGraph& step, const Raises& raises = {}, std::size_t max_nodes = max_body_nodes);

/// Puts the bodies of functions that are to be inlined in the place of their calls, in the step alone: its bodies have
/// gone through it. Calls stay as they do in `lower_calls`. False if there were none.
bool inline_calls(StepGraph& step, std::size_t max_nodes = max_body_nodes);

}  // namespace dflow
