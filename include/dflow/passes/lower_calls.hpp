#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/passes/frames.hpp>

#include <cstddef>

namespace dflow {

/// Most nodes of all bodies of a step together, with the nodes that lowering their calls makes.
inline constexpr std::size_t max_body_nodes = std::size_t{1} << 20;
/// Most nodes that inlining adds to a step and all its bodies together; calls beyond that stay calls. Functions that
/// each call the one before twice would double with each level.
inline constexpr std::size_t max_inlined_nodes = std::size_t{1} << 17;

/// Replaces the calls, branches and loops of a step by their raw form: Switches, Merges and frames. Only calls with
/// attached bodies are replaced; calls in the bodies are replaced too. The iterations of a loop may then overlap, as
/// many as its `parallel_iterations`, unless a node in it keeps or changes state.
///
/// The values that a gradient keeps of a loop's iterations are variables of the frame. Some calls stay calls:
/// - functions that call themselves;
/// - calls on a device with a memory of its own;
/// - calls of which a gradient keeps values, if they are on several devices, are a branch that makes handles, or have
///   a body in the raw form;
/// - a choice among more than 256 bodies;
/// - calls that would become more than 2^14 nodes, or the step and all bodies together more than `max_nodes`.
/// The calls in their bodies are lowered, and `raises` says how the bodies then run (`form_frames`).
///
/// `check`, if there is one, is called now and then, and throws to give up.
void lower_calls(StepGraph& step, const Raises& raises = {}, std::size_t max_nodes = max_body_nodes,
                 FunctionRef<void()>* check = nullptr);

/// Replaces calls of functions that are to be inlined by the functions' bodies. It changes the step alone: its bodies
/// have been inlined already. The same calls stay as in `lower_calls`. Returns false if there were none to inline.
bool inline_calls(StepGraph& step, std::size_t max_nodes = max_body_nodes, FunctionRef<void()>* check = nullptr);

}  // namespace dflow
