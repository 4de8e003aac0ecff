#pragma once

#include <dflow/graph/node.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dflow {

/// For tables of edges.
struct EndpointHash {
  std::size_t operator()(Endpoint of) const noexcept {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(of.node) << 20 ^ static_cast<std::uint64_t>(of.index)) *
                                    0x9e3779b97f4a7c15u);
  }
};

/// The part of a graph that one kind of step needs: what passes transform and plans are made from. Node ids are
/// positions in `nodes`, which stand in a topological order (but for the back edges of loops). Nodes are placed: their
/// devices, `placed_on`, say who is together, `device` is what the user asked for, and nothing is `colocated_with`.
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

/// Where each of some edges stands among them: feeds, say.
class EdgePositions {
 public:
  EdgePositions() = default;
  explicit EdgePositions(std::span<const Endpoint> edges);

  /// -1 for an edge that is not among them; of several alike any one.
  std::int32_t find(Endpoint edge) const noexcept;
  bool contains(Endpoint edge) const noexcept { return find(edge) >= 0; }
  /// Position of an edge that is there twice, else -1.
  std::int32_t twice() const noexcept;

 private:
  struct Entry {
    Endpoint edge;
    std::int32_t position;
  };
  std::vector<Entry> sorted_;
};

/// Errors: InvalidArgument, naming a node that depends on a later one.
void require_topological_order(const StepGraph& graph);

/// The tensor that a node of role `constant` stands for.
AnyTensor constant_value(const Node& node);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/graph/step_graph.ipp>
#endif
