#pragma once

#include <dflow/graph/node.hpp>

#include <vector>

namespace dflow {

/// The part of a graph that one kind of step needs: what passes transform and plans are made from. Node ids are positions
/// in `nodes`, which stand in a topological order (but for the back edges of loops).
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

}  // namespace dflow
