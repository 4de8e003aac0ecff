#pragma once

#include <dflow/graph/step_graph.hpp>

#include <optional>

namespace dflow {

/// Turns raw control flow into calls of functions, from the innermost outwards: a Switch with the Merges that join
/// its sides becomes an `If`, a frame a `While`. `lower_calls` and TensorFlow write branches and loops in the raw
/// form. The same nodes run equally often; iterations do not overlap.
///
/// - A branch: Merges of two inputs. One input is alive on one side of the edge that their Switches read, and the
///   other on the other side. Nothing else that is alive on one side only is read outside. A side may have effects
///   alone. Its Switches wait for nothing that the branch does.
/// - A loop: Merges with an Enter and a NextIteration each, and one LoopCond. Switches by the LoopCond read the Merges,
///   results of the condition, edges that enter as a constant, and constants. Exits read the outputs of the Merges'
///   Switches where the LoopCond is false. The body may read a result of the condition if the result has no effects:
///   it is computed again. An edge that enters is dead only where the condition is, and the condition is dead in no
///   iteration alone. Nothing waits for an Enter of a Merge. Only the body waits for the condition.
///
/// Returns nothing if any part of the graph has another form, is in more than 64 frames, or is alive on more than 32
/// sides.
///
/// Precondition: a topological order. Fetches and feeds are outside of frames.
/// Errors: the errors of `lay_out_frames`.
std::optional<StepGraph> raise_frames(StepGraph graph);

}  // namespace dflow
