#pragma once

#include <dflow/passes/place.hpp>

namespace dflow {

DFLOW_INLINE void place(StepGraph& graph, std::span<const std::shared_ptr<Device>> devices, const OpTable&, bool) {
  for (Node& node : graph.nodes) node.device = devices.front()->name();
}

DFLOW_INLINE std::string placement_text(const StepGraph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += str_cat(node.name, ": ", node.op->name, " -> ", node.device, "\n");
  return text;
}

}  // namespace dflow
