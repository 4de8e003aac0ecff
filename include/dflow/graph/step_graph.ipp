#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <variant>

namespace dflow {

namespace detail {

DFLOW_INLINE bool is_edge_before(Endpoint a, Endpoint b) noexcept {
  return a.node != b.node ? a.node < b.node : a.index < b.index;
}

}  // namespace detail

DFLOW_INLINE EdgePositions::EdgePositions(std::span<const Endpoint> edges) {
  sorted_.reserve(edges.size());
  for (const Endpoint edge : edges) sorted_.push_back({edge, static_cast<std::int32_t>(sorted_.size())});
  const auto is_before = [](const Entry& a, const Entry& b) { return detail::is_edge_before(a.edge, b.edge); };
  if (!std::is_sorted(sorted_.begin(), sorted_.end(), is_before)) std::sort(sorted_.begin(), sorted_.end(), is_before);
}

DFLOW_INLINE std::int32_t EdgePositions::find(Endpoint edge) const noexcept {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), edge, [](const Entry& entry, Endpoint wanted) {
    return detail::is_edge_before(entry.edge, wanted);
  });
  return found != sorted_.end() && found->edge == edge ? found->position : -1;
}

DFLOW_INLINE std::int32_t EdgePositions::twice() const noexcept {
  const auto found = std::adjacent_find(sorted_.begin(), sorted_.end(),
                                        [](const Entry& a, const Entry& b) { return a.edge == b.edge; });
  return found == sorted_.end() ? -1 : found->position;
}

DFLOW_INLINE void require_topological_order(const StepGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto is_before = [i](NodeId id) { return id >= 0 && static_cast<std::size_t>(id) < i; };
    if (std::all_of(node.inputs.begin(), node.inputs.end(), [&](Endpoint input) { return is_before(input.node); }) &&
        std::all_of(node.control_inputs.begin(), node.control_inputs.end(), is_before)) {
      continue;
    }
    throw Error(invalid_argument(str_cat("'", node.name, "' depends on a later node: a step cannot have cycles"))
                    .with_node(node.op->name, node.name)
                    .with_location(node.where));
  }
}

DFLOW_INLINE AnyTensor constant_value(const Node& node) {
  return std::get<AnyTensor>(attr_of(node, node.op->attr_fields[0]));
}

}  // namespace dflow
