#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

/// Gives a node its inputs, a stretch at the end of the inputs of all nodes.
void set_inputs(StepGraph& graph, StepNode& node, std::span<const StepEndpoint> inputs,
                std::span<const StepNodeId> controls) {
  node.input_begin = static_cast<std::uint32_t>(graph.inputs.size());
  node.num_inputs = static_cast<std::uint32_t>(inputs.size());
  node.control_begin = static_cast<std::uint32_t>(graph.control_inputs.size());
  node.num_controls = static_cast<std::uint32_t>(controls.size());
  graph.inputs.insert(graph.inputs.end(), inputs.begin(), inputs.end());
  graph.control_inputs.insert(graph.control_inputs.end(), controls.begin(), controls.end());
}

/// The step's own copy, with so many inputs.
const Node& keep(StepGraph& graph, Node node, std::size_t num_inputs) {
  node.inputs.assign(num_inputs, Endpoint());
  node.control_inputs.clear();
  if (graph.made.empty() || graph.made.back().use_count() > 1) {
    graph.made.push_back(std::make_shared<std::deque<Node>>());
  }
  return graph.made.back()->emplace_back(std::move(node));
}

}  // namespace detail

StepNodeId StepGraph::append(StepNode like, std::span<const StepEndpoint> its_inputs,
                             std::span<const StepNodeId> its_controls) {
  detail::set_inputs(*this, like, its_inputs, its_controls);
  const StepNodeId id = nodes.end_index();
  nodes.push_back(like);
  return id;
}

StepNodeId StepGraph::append(Node new_node, std::int32_t placed_on, std::span<const StepEndpoint> its_inputs,
                             std::span<const StepNodeId> its_controls) {
  StepNode node(detail::keep(*this, std::move(new_node), its_inputs.size()));
  node.placed_on = placed_on;
  return append(node, its_inputs, its_controls);
}

void StepGraph::replace(StepNodeId id, Node new_node, std::span<const StepEndpoint> its_inputs,
                        std::span<const StepNodeId> its_controls) {
  StepNode with(detail::keep(*this, std::move(new_node), its_inputs.size()));
  with.placed_on = node(id).placed_on;
  detail::set_inputs(*this, with, its_inputs, its_controls);
  node(id) = with;
}

void StepGraph::drop_made_attrs(StepNodeId id) {
  // Nodes in `made` are this step's own and no const objects; the attributes live on where another node shares them.
  const_cast<Node*>(node(id).node)->attrs.reset();
}

void StepGraph::drop_unused_made() {
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

void require_topological_order(const StepGraph& graph) {
  for (const StepNodeId id : graph.nodes.indices()) {
    const StepNode& node = graph.node(id);
    const auto is_before = [id](StepNodeId source) { return source.is_valid() && source < id; };
    const std::span<const StepEndpoint> inputs = graph.inputs_of(node);
    const std::span<const StepNodeId> controls = graph.controls_of(node);
    if (std::all_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) { return is_before(input.node); }) &&
        std::all_of(controls.begin(), controls.end(), is_before)) {
      continue;
    }
    throw_error(
        Status::invalid_argument(str_cat("'", node->name, "' depends on a later node: a step cannot have cycles"))
            .with_node(node->op->name, node->name)
            .with_location(node->where));
  }
}

AnyTensor constant_value(const Node& node) { return std::get<AnyTensor>(attr_of(node, node.op->attr_fields[0])); }

}  // namespace dflow
