#pragma once

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/output.hpp>

#include <span>
#include <vector>

namespace dflow::detail {

/// A node that stands for an edge of a body, and the gradient with respect to it.
struct KeptGradient {
  NodeId node;
  AnyOutput dy;
};

/// The gradients with respect to the inputs of a node that calls functions, for those that are wanted, and behind them
/// with respect to `constants`, which its functions read and no input gives them: one more call, of functions that are
/// the gradients of its functions. An edge is invalid where there is none.
///
/// dys: with respect to its outputs, invalid where nothing depends on one. What the gradient reads of the bodies the
/// call keeps: of a branch or a function the value, of a loop one for each iteration. `options` say how the bodies are
/// differentiated: aggregation and gates.
/// Errors: InvalidArgument for what is kept of something else than its bodies; ResourceExhausted for calls in bodies of
/// calls in more than 64 levels, so for a function that calls itself.
std::vector<AnyOutput> call_gradients(GraphStore& graph, NodeId call, std::span<const AnyOutput> dys,
                                      std::span<const KeptGradient> kept, const std::vector<bool>& is_wanted,
                                      std::span<const Endpoint> constants, const GradientOptions& options);

}  // namespace dflow::detail
