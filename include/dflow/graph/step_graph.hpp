#pragma once

#include <dflow/graph/node.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// For tables of edges.
struct EndpointHash {
  std::size_t operator()(Endpoint of) const noexcept {
    return static_cast<std::size_t>(
        (static_cast<std::uint64_t>(of.node) << 20 ^ static_cast<std::uint64_t>(of.index)) * 0x9e3779b97f4a7c15u);
  }
};

/// The part of a graph that one kind of step needs: what passes transform and plans are made from. Node ids are positions
/// in `nodes`, which stand in a topological order (but for the back edges of loops). Nodes are placed: who must be together
/// is said by their devices, and `colocated_with` by none.
///
/// Thread safety: a value type.
struct StepGraph {
  std::vector<Node> nodes;
  std::vector<Endpoint> feeds;    ///< edges whose tensors the caller gives; their producers need not run
  std::vector<Endpoint> fetches;  ///< edges whose tensors the caller gets; a fetch may be one of the feeds
  std::vector<NodeId> targets;    ///< nodes that must run although nothing is fetched from them

  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  const OutputInfo& output(Endpoint endpoint) const {
    return node(endpoint.node).outputs[static_cast<std::size_t>(endpoint.index)];
  }
};

/// Errors: InvalidArgument, naming a node that depends on a later one.
void require_topological_order(const StepGraph& graph);

/// The tensor that a node of role `constant` stands for.
AnyTensor constant_value(const Node& node);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/graph/step_graph.ipp>
#endif
