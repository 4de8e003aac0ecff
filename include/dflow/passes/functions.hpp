#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/passes/frames.hpp>
#include <dflow/passes/lower_calls.hpp>
#include <dflow/passes/prune.hpp>

#include <cstddef>

namespace dflow {

struct BodyOptions {
  bool lowers = false;   ///< calls to the raw form of control flow (`lower_calls`)
  Raises raises = {};    ///< the raw form to calls (`form_frames`)
  bool is_part = false;  ///< the step is part of another one
  /// Most nodes of all bodies together, with the nodes that lowering their calls makes.
  std::size_t max_nodes = max_body_nodes;
  /// Called now and then; throws to give up (a deadline). Null: nothing to call.
  FunctionRef<void()>* check = nullptr;
};

/// Gives the nodes of a pruned step that call functions their bodies. The calls in the bodies get theirs too, and all
/// bodies get frames (`form_frames`). `visit` is called with each node of a body, as by `prune`, and places it;
/// constants go where the call is. A body that calls share is there once. A body that calls itself, with the same
/// edges around it, has a number (`StepGraph::recursion`), and its calls in it have the number instead of a body.
///
/// Errors:
/// - InvalidArgument, naming the node, for a function that the graph does not have or whose body is not finished.
/// - Unimplemented for a body that sends or receives, unless the step is part of another step and the call has a
///   frame for that.
/// - ResourceExhausted for calls in bodies of calls in 256 levels, and for bodies of more than `max_nodes` together.
/// - The errors that `visit` throws.
void attach_bodies(const GraphStore& graph, StepGraph& step, PruneScratch& scratch,
                   FunctionRef<void(NodeId, StepNode&)> visit, const BodyOptions& options = {});

}  // namespace dflow
