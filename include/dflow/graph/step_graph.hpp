#pragma once

#include <dflow/graph/node.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
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

/// A node of a step: what it is stands in the graph it comes from, what it depends on and where it runs stands here.
/// What a pass needs of most nodes is here too, so that it does not touch what is scattered over memory.
struct StepNode {
  const Node* node = nullptr;
  const OpDef* op = nullptr;
  std::int32_t num_outputs = 0;
  std::int32_t placed_on = -1;    ///< position of its device among those of the step
  bool is_fed_only = false;       ///< its outputs are fed, its kernel does not run
  std::uint32_t input_begin = 0;  ///< into the inputs of all nodes of the step
  std::uint32_t num_inputs = 0;
  std::uint32_t control_begin = 0;  ///< into the control inputs of all nodes
  std::uint32_t num_controls = 0;

  StepNode() = default;
  explicit StepNode(const Node& of) : node(&of), op(of.op), num_outputs(static_cast<std::int32_t>(of.outputs.size())) {}

  const Node& operator*() const noexcept { return *node; }
  const Node* operator->() const noexcept { return node; }
};

/// The part of a graph that one kind of step needs: what passes transform and plans are made from. Node ids are
/// positions in `nodes`, which stand in a topological order (but for the back edges of loops). Nodes are placed: their
/// devices, `placed_on`, say who is together.
///
/// It refers to the nodes of the graph it comes from, which it keeps alive, and owns those that passes have made.
///
/// Thread safety: a value type.
struct StepGraph {
  std::vector<StepNode> nodes;
  std::vector<Endpoint> inputs;        ///< a stretch for each node
  std::vector<NodeId> control_inputs;  ///< the same
  std::vector<Endpoint> feeds;         ///< edges whose tensors the caller gives; their producers need not run
  std::vector<Endpoint> fetches;       ///< edges whose tensors the caller gets; a fetch may be one of the feeds
  std::vector<NodeId> targets;         ///< nodes that must run although nothing is fetched from them
  std::shared_ptr<const void> graph;   ///< keeps the nodes that come from it
  /// Nodes that were made for this step, which do not move; a list that copies share is not added to.
  std::vector<std::shared_ptr<std::deque<Node>>> made;

  const StepNode& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  StepNode& node(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  const OutputInfo& output(Endpoint endpoint) const {
    return node(endpoint.node)->outputs[static_cast<std::size_t>(endpoint.index)];
  }
  std::span<const Endpoint> inputs_of(const StepNode& node) const {
    return {inputs.data() + node.input_begin, node.num_inputs};
  }
  std::span<Endpoint> inputs_of(const StepNode& node) { return {inputs.data() + node.input_begin, node.num_inputs}; }
  std::span<const NodeId> controls_of(const StepNode& node) const {
    return {control_inputs.data() + node.control_begin, node.num_controls};
  }
  std::span<NodeId> controls_of(const StepNode& node) {
    return {control_inputs.data() + node.control_begin, node.num_controls};
  }

  /// Appends what `like` is, with inputs of its own. Precondition: its node lives as long as `graph` or `made`.
  NodeId append(StepNode like, std::span<const Endpoint> its_inputs, std::span<const NodeId> its_controls);
  /// Appends a node that is this step's alone, with the inputs it says.
  NodeId append(Node new_node, std::int32_t placed_on = -1);
  /// Puts a node that is this step's alone in the place of one, on its device.
  void replace(NodeId id, Node new_node, std::span<const Endpoint> its_inputs, std::span<const NodeId> its_controls);
  /// Lets go of the attributes of a node that nothing reads any more. Precondition: it was made, and since `made` was
  /// last shared.
  void drop_made_attrs(NodeId id);
  /// Lets go of all nodes that were made and are not in `nodes`.
  void drop_unused_made();
};

/// Where each of some edges stands among them: feeds, say.
class EdgePositions {
 public:
  EdgePositions() = default;
  /// Precondition: their nodes are below `num_nodes`.
  EdgePositions(std::span<const Endpoint> edges, std::size_t num_nodes);

  /// -1 for an edge that is not among them; of several alike any one.
  std::int32_t find(Endpoint edge) const noexcept;
  bool contains(Endpoint edge) const noexcept { return find(edge) >= 0; }
  /// Position of an edge that is there twice, else -1.
  std::int32_t twice() const noexcept { return twice_; }

 private:
  struct Entry {
    std::int32_t index;  ///< of the output
    std::int32_t position;
  };
  std::vector<std::int32_t> first_;  ///< by node, into `entries_`; one more for the end
  std::vector<Entry> entries_;       ///< of each node in the order of its outputs
  std::int32_t twice_ = -1;
};

/// Errors: InvalidArgument, naming a node that depends on a later one.
void require_topological_order(const StepGraph& graph);

/// The tensor that a node of role `constant` stands for.
AnyTensor constant_value(const Node& node);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/graph/step_graph.ipp>
#endif
