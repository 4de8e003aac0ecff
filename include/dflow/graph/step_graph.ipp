#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

/// Gives a node its inputs, a stretch at the end of those of all nodes.
DFLOW_INLINE void set_inputs(StepGraph& graph, StepNode& node, std::span<const Endpoint> inputs,
                             std::span<const NodeId> controls) {
  node.input_begin = static_cast<std::uint32_t>(graph.inputs.size());
  node.num_inputs = static_cast<std::uint32_t>(inputs.size());
  node.control_begin = static_cast<std::uint32_t>(graph.control_inputs.size());
  node.num_controls = static_cast<std::uint32_t>(controls.size());
  graph.inputs.insert(graph.inputs.end(), inputs.begin(), inputs.end());
  graph.control_inputs.insert(graph.control_inputs.end(), controls.begin(), controls.end());
}

/// The step's own copy.
DFLOW_INLINE const Node& keep(StepGraph& graph, Node node) {
  if (graph.made.empty() || graph.made.back().use_count() > 1) {
    graph.made.push_back(std::make_shared<std::deque<Node>>());
  }
  return graph.made.back()->emplace_back(std::move(node));
}

}  // namespace detail

DFLOW_INLINE NodeId StepGraph::append(StepNode like, std::span<const Endpoint> its_inputs,
                                      std::span<const NodeId> its_controls) {
  detail::set_inputs(*this, like, its_inputs, its_controls);
  nodes.push_back(like);
  return static_cast<NodeId>(nodes.size()) - 1;
}

DFLOW_INLINE NodeId StepGraph::append(Node new_node, std::int32_t placed_on) {
  const Node& kept = detail::keep(*this, std::move(new_node));
  StepNode node(kept);
  node.placed_on = placed_on;
  return append(node, kept.inputs, kept.control_inputs);
}

DFLOW_INLINE void StepGraph::replace(NodeId id, Node new_node, std::span<const Endpoint> its_inputs,
                                     std::span<const NodeId> its_controls) {
  StepNode with(detail::keep(*this, std::move(new_node)));
  with.placed_on = node(id).placed_on;
  detail::set_inputs(*this, with, its_inputs, its_controls);
  node(id) = with;
}

DFLOW_INLINE void StepGraph::drop_made_attrs(NodeId id) {
  // Nodes in `made` are this step's own and no const objects; the attributes live on where another node shares them.
  const_cast<Node*>(node(id).node)->attrs.reset();
}

DFLOW_INLINE void StepGraph::drop_unused_made() {
  std::unordered_map<const Node*, const Node*> kept;  // a node that was made, and its place from now on
  for (const auto& list : made) {
    for (const Node& each : *list) kept.emplace(&each, nullptr);
  }
  if (kept.empty()) return made.clear();
  const auto used = std::make_shared<std::deque<Node>>();
  for (StepNode& each : nodes) {
    const auto found = kept.find(each.node);
    if (found == kept.end()) continue;
    if (found->second == nullptr) found->second = &used->emplace_back(*each.node);
    each.node = found->second;
  }
  made.clear();
  if (!used->empty()) made.push_back(used);
}

/// Sorted by counting, so that a node costs the same among few and among many.
DFLOW_INLINE EdgePositions::EdgePositions(std::span<const Endpoint> edges, std::size_t num_nodes) {
  if (edges.empty()) return;
  first_.resize(num_nodes + 1);
  for (const Endpoint edge : edges) ++first_[static_cast<std::size_t>(edge.node)];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());  // where each node's end
  entries_.resize(edges.size());
  for (std::size_t i = edges.size(); i-- > 0;) {
    std::int32_t& first = first_[static_cast<std::size_t>(edges[i].node)];
    entries_[static_cast<std::size_t>(--first)] = {edges[i].index, static_cast<std::int32_t>(i)};
  }
  for (std::size_t node = 0; node < num_nodes; ++node) {
    const auto begin = entries_.begin() + first_[node], end = entries_.begin() + first_[node + 1];
    if (end - begin < 2) continue;
    std::sort(begin, end, [](const Entry& a, const Entry& b) { return a.index < b.index; });
    const auto alike =
        std::adjacent_find(begin, end, [](const Entry& a, const Entry& b) { return a.index == b.index; });
    if (alike != end && twice_ < 0) twice_ = alike->position;
  }
}

DFLOW_INLINE std::int32_t EdgePositions::find(Endpoint edge) const noexcept {
  const auto node = static_cast<std::size_t>(edge.node);
  if (edge.node < 0 || node + 1 >= first_.size()) return -1;
  const auto begin = entries_.begin() + first_[node], end = entries_.begin() + first_[node + 1];
  const auto found = std::lower_bound(begin, end, edge.index,
                                      [](const Entry& entry, std::int32_t index) { return entry.index < index; });
  return found != end && found->index == edge.index ? found->position : -1;
}

DFLOW_INLINE void require_topological_order(const StepGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const StepNode& node = graph.nodes[i];
    const auto is_before = [i](NodeId id) { return id >= 0 && static_cast<std::size_t>(id) < i; };
    const std::span<const Endpoint> inputs = graph.inputs_of(node);
    const std::span<const NodeId> controls = graph.controls_of(node);
    if (std::all_of(inputs.begin(), inputs.end(), [&](Endpoint input) { return is_before(input.node); }) &&
        std::all_of(controls.begin(), controls.end(), is_before)) {
      continue;
    }
    throw_error(invalid_argument(str_cat("'", node->name, "' depends on a later node: a step cannot have cycles"))
                    .with_node(node->op->name, node->name)
                    .with_location(node->where));
  }
}

DFLOW_INLINE AnyTensor constant_value(const Node& node) {
  return std::get<AnyTensor>(attr_of(node, node.op->attr_fields[0]));
}

}  // namespace dflow
