#pragma once

#include <dflow/graph/node.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// The number of a node among the nodes of a step; another step, and the graph, number it differently.
using StepNodeId = StrongIndex<struct StepNodeTag>;
using StepEndpoint = BasicEndpoint<StepNodeId>;

/// For tables of edges.
struct EndpointHash {
  template <class Index>
  std::size_t operator()(BasicEndpoint<Index> of) const noexcept {
    const auto node = static_cast<std::uint64_t>(of.node.value()), index = static_cast<std::uint64_t>(of.index);
    return static_cast<std::size_t>((node << 20 ^ index) * 0x9e3779b97f4a7c15u);
  }
};

struct StepCall;

/// A node of a step. Its definition stands in the graph it comes from; its dependencies and its device stand here. The
/// fields that a pass needs of most nodes are here too, so that a pass does not touch scattered memory.
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
  std::int32_t call = -1;  ///< of a node that calls functions: the call that it runs, among the graph's `calls`

  StepNode() = default;
  explicit StepNode(const Node& of) : node(&of), op(of.op), num_outputs(static_cast<std::int32_t>(of.outputs.size())) {}

  const Node& operator*() const noexcept { return *node; }
  const Node* operator->() const noexcept { return node; }
};

/// The part of a graph that one kind of step needs. Passes transform it, and plans are made from it. Its nodes stand
/// in a topological order (except for the back edges of loops) and are placed: nodes with the same device,
/// `placed_on`, are together.
///
/// It refers to the nodes of the graph it comes from, which it keeps alive, and owns the nodes that passes have made.
/// A node here reads `inputs_of` it. `Node::inputs` has as many entries; they name nodes of the graph, or none if the
/// node was made.
///
/// Thread safety: a value type.
struct StepGraph {
  IndexedVector<StepNodeId, StepNode> nodes;
  std::vector<StepEndpoint> inputs;        ///< a stretch for each node
  std::vector<StepNodeId> control_inputs;  ///< the same
  std::vector<StepEndpoint> feeds;         ///< edges with tensors that the caller gives; their producers need not run
  std::vector<StepEndpoint> fetches;       ///< edges with tensors that the caller gets; a fetch may be one of the feeds
  std::vector<StepNodeId> targets;         ///< nodes that must run although nothing is fetched from them
  std::shared_ptr<const void> graph;       ///< keeps the nodes that come from it
  /// Nodes that were made for this step, which do not move; a list that copies share is not added to.
  std::vector<std::shared_ptr<std::deque<Node>>> made;
  std::vector<std::shared_ptr<const StepCall>> calls;  ///< the calls that its nodes run
  std::int32_t recursion = -1;  ///< of a body that calls itself: a number that no other body of the step has
  bool gives_dead = false;      ///< a fetch may be dead, of raw control flow (`form_frames`)

  const StepNode& node(StepNodeId id) const { return nodes[id]; }
  StepNode& node(StepNodeId id) { return nodes[id]; }
  const OutputInfo& output(StepEndpoint endpoint) const {
    return nodes[endpoint.node]->outputs[static_cast<std::size_t>(endpoint.index)];
  }
  /// Null for a node that calls nothing.
  const StepCall* call_of(const StepNode& node) const {
    return node.call < 0 ? nullptr : calls[static_cast<std::size_t>(node.call)].get();
  }
  std::span<const StepEndpoint> inputs_of(const StepNode& node) const {
    return {inputs.data() + node.input_begin, node.num_inputs};
  }
  std::span<StepEndpoint> inputs_of(const StepNode& node) {
    return {inputs.data() + node.input_begin, node.num_inputs};
  }
  std::span<const StepNodeId> controls_of(const StepNode& node) const {
    return {control_inputs.data() + node.control_begin, node.num_controls};
  }
  std::span<StepNodeId> controls_of(const StepNode& node) {
    return {control_inputs.data() + node.control_begin, node.num_controls};
  }

  /// Appends a copy of `like`, with inputs of its own. Precondition: its node lives as long as `graph` or `made`.
  StepNodeId append(StepNode like, std::span<const StepEndpoint> its_inputs, std::span<const StepNodeId> its_controls);
  /// Appends a node that is this step's alone; inputs of a graph that `new_node` names are forgotten.
  StepNodeId append(Node new_node, std::int32_t placed_on, std::span<const StepEndpoint> its_inputs = {},
                    std::span<const StepNodeId> its_controls = {});
  /// Replaces node `id` by a node that is this step's alone, on the same device.
  void replace(StepNodeId id, Node new_node, std::span<const StepEndpoint> its_inputs,
               std::span<const StepNodeId> its_controls);
  /// Lets go of the attributes of a node that nothing reads any more. Precondition: it was made, and since `made` was
  /// last shared.
  void drop_made_attrs(StepNodeId id);
  /// Lets go of all nodes that were made and are not in `nodes`.
  void drop_unused_made();
};

/// The bodies that a node that calls functions runs. The feeds of each body are the inputs of the node behind the
/// first `num_leading`, in their order; its fetches are the function's results.
///
/// Thread safety: immutable.
struct StepCall {
  /// In the order of the node's attributes; calls may share one. Null: a body that the call stands in.
  std::vector<std::shared_ptr<const StepGraph>> bodies;
  std::vector<std::int32_t> around = {};  ///< for a null body the `recursion` of the body that it stands for, else -1
  std::size_t num_leading = 0;            ///< inputs that select the function to run
  /// The values that the node gives behind its results. For a body, it is a result behind the results that the
  /// function has. For a loop, it is the values of all iterations in a list, or the number of iterations (-1).
  struct Kept {
    std::size_t body = 0;
    std::ptrdiff_t result = -1;
  };
  std::vector<Kept> kept = {};
  /// For a loop: the most memory that the kept values may take (`WhileOptions`); -1: any.
  std::int64_t max_kept_bytes = -1;
  bool is_inlined = false;  ///< its body is to stand in its place
  /// For the parts of a call on several devices, the same in all parts: tensors sent between the parts have this frame
  /// and the iteration in their keys. Empty: the bodies send nothing.
  std::string frame = {};

  /// -1 unless the call stands in that body.
  std::int32_t around_of(std::size_t body) const noexcept { return body < around.size() ? around[body] : -1; }
};

/// Finds the position of an edge in a list of edges, such as feeds.
template <class Index>
class EdgePositions {
 public:
  using Edge = BasicEndpoint<Index>;

  EdgePositions() = default;
  /// Precondition: their nodes are below `num_nodes`.
  EdgePositions(const std::vector<Edge>& edges, std::size_t num_nodes);

  /// -1 for an edge that is not among them; of several alike any one.
  std::int32_t find(Edge edge) const noexcept;
  bool contains(Edge edge) const noexcept { return find(edge) >= 0; }
  /// Position of an edge that is there twice, else -1.
  std::int32_t twice() const noexcept { return twice_; }

 private:
  struct Entry {
    std::int32_t index;  ///< of the output
    std::int32_t position;
  };
  IndexedVector<Index, std::int32_t> first_;  ///< into `entries_`; one more for the end
  std::vector<Entry> entries_;                ///< of each node in the order of its outputs
  std::int32_t twice_ = -1;
};

/// Errors: InvalidArgument, naming a node that depends on a later node.
void require_topological_order(const StepGraph& graph);

/// The tensor that a node of role `constant` stands for.
AnyTensor constant_value(const Node& node);

// ---- edges by number ----

// Sorted by counting, so that a node costs the same among few and among many.
template <class Index>
EdgePositions<Index>::EdgePositions(const std::vector<Edge>& edges, std::size_t num_nodes) {
  if (edges.empty()) return;
  first_.resize(num_nodes + 1);
  for (const Edge edge : edges) ++first_[edge.node];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());  // where each node's end
  entries_.resize(edges.size());
  for (std::size_t i = edges.size(); i-- > 0;) {
    entries_[static_cast<std::size_t>(--first_[edges[i].node])] = {edges[i].index, static_cast<std::int32_t>(i)};
  }
  for (const Index node : IndexRange<Index>(num_nodes)) {
    const auto begin = entries_.begin() + first_[node], end = entries_.begin() + first_[node + 1];
    if (end - begin < 2) continue;
    std::sort(begin, end, [](const Entry& a, const Entry& b) { return a.index < b.index; });
    const auto alike =
        std::adjacent_find(begin, end, [](const Entry& a, const Entry& b) { return a.index == b.index; });
    if (alike != end && twice_ < 0) twice_ = alike->position;
  }
}

template <class Index>
std::int32_t EdgePositions<Index>::find(Edge edge) const noexcept {
  if (!edge.node.is_valid() || edge.node.position() + 1 >= first_.size()) return -1;
  const auto begin = entries_.begin() + first_[edge.node], end = entries_.begin() + first_[edge.node + 1];
  const auto found = std::lower_bound(begin, end, edge.index,
                                      [](const Entry& entry, std::int32_t index) { return entry.index < index; });
  return found != end && found->index == edge.index ? found->position : -1;
}

}  // namespace dflow
