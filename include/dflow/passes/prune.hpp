#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <span>

namespace dflow {

/// Copies the part of a graph that a step needs: everything the fetches and targets depend on, stopping at feeds. The graph
/// is locked for reading meanwhile.
///
/// Errors: InvalidArgument if an endpoint does not belong to the graph.
StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                std::span<const NodeId> targets);

/// Drops the nodes of a step graph that nothing needs any more, and renumbers the rest.
StepGraph prune(StepGraph graph);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/prune.ipp>
#endif
