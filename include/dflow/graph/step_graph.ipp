#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <variant>

namespace dflow {

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
