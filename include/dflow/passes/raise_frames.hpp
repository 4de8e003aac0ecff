#pragma once

#include <dflow/graph/step_graph.hpp>

#include <optional>

namespace dflow {

/// The raw form of control flow as calls of functions: a Switch with the Merges that join its sides becomes an `If`, a
/// frame a `While`, from the innermost outwards. What `lower_calls` and TensorFlow make of branches and loops has that
/// form. What runs, and how often, is the same; iterations do not overlap.
///
/// - A branch: Merges of two inputs, of which one is alive on one side of what their Switches read, and the other on
///   the other side; nothing else that is alive on one side only is read outside. A side may have effects alone. Its
///   Switches wait for nothing that it does.
/// - A loop: Merges with an Enter and a NextIteration each; one LoopCond; Switches by it of these Merges, and of what
///   enters as a constant; Exits of what the Merges' Switches give where it is false. What the condition has computed
///   the body may read if it has no effects: it is computed again. Whatever enters is dead only where the condition is,
///   which is dead in no iteration alone; nothing waits for an Enter of a Merge, or, but in the body, for the
///   condition.
///
/// None, if anything of the graph has another form, is in more than 64 frames, or alive on more than 32 sides.
///
/// Precondition: a topological order. Fetches and feeds are outside of frames.
/// Errors: those of `lay_out_frames`.
std::optional<StepGraph> raise_frames(StepGraph graph);

}  // namespace dflow
