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

/// Builds the gradients of a node that calls functions: for the inputs that are wanted, and behind them for
/// `constants`. The functions of the node read `constants`, and no input gives them. The gradient is one more call;
/// its functions are the gradients of the node's functions. An edge is invalid where there is no gradient.
///
/// dys: the gradients with respect to the outputs of the node, invalid where nothing depends on an output. The call
/// keeps the values that its gradient reads from the bodies: one value for a branch or a function, one value per
/// iteration for a loop. `options` say how the bodies are differentiated: aggregation and gates.
/// Errors: InvalidArgument if a kept value is not of the call's bodies; ResourceExhausted for calls in bodies of calls
/// in more than 64 levels, and so for a function that calls itself.
std::vector<AnyOutput> call_gradients(GraphStore& graph, NodeId call, std::span<const AnyOutput> dys,
                                      std::span<const KeptGradient> kept, const std::vector<bool>& is_wanted,
                                      std::span<const Endpoint> constants, const GradientOptions& options);

}  // namespace dflow::detail
