#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/node_def_writer.hpp>

#include <algorithm>

namespace dflow {

bool operator==(const NodeDef& a, const NodeDef& b) {
  return a.name == b.name && a.op == b.op && a.device == b.device && a.types == b.types && a.inputs == b.inputs &&
         a.colocated_with == b.colocated_with && a.function == b.function && a.file == b.file && a.line == b.line &&
         std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && attr_equal(x.second, y.second); });
}

namespace detail {

/// Writes the nodes of one graph.
class GraphDefBuilder {
 public:
  explicit GraphDefBuilder(const GraphStore& graph) : graph_(graph) {}

  GraphDef build_nodes(const GraphStore::Nodes& nodes, std::size_t first) {
    GraphDef def;
    def.seed = graph_.options().seed;
    first = std::min(first, nodes.size());
    def.nodes.reserve(nodes.size() - first);
    for (const NodeId id : IndexRange<NodeId>(NodeId(first), NodeId(nodes.size()))) {
      def.nodes.push_back(build_node(nodes[id]));
      if (nodes[id].function.is_valid()) def.version = GraphDef::functions_version;
    }
    return def;
  }

  GraphDef build() {
    const GraphStore::Nodes nodes = graph_.nodes();
    GraphDef def = build_nodes(nodes, 0);
    for (const auto& [name, ids] : graph_.collections()) {
      std::vector<std::string>& members = def.collections.emplace_back(name, std::vector<std::string>()).second;
      for (const NodeId id : ids) {
        if (id.position() < nodes.size()) members.push_back(graph_.node(id).name);
      }
    }
    return def;
  }

 private:
  NodeDef build_node(const Node& node) {
    NodeDef def = writer_.write(node);
    def.device = node.device;
    def.inputs.reserve(node.inputs.size() + node.control_inputs.size());
    for (const Endpoint input : node.inputs) {
      def.inputs.push_back(NodeDefWriter::edge_name(graph_.node(input.node).name, input.index));
    }
    for (const NodeId input : node.control_inputs) def.inputs.push_back("^" + graph_.node(input).name);
    if (node.colocated_with.is_valid()) def.colocated_with = graph_.node(node.colocated_with).name;
    if (node.function.is_valid()) def.function = graph_.node(node.function).name;
    return def;
  }

  const GraphStore& graph_;
  NodeDefWriter writer_;
};

}  // namespace detail

std::uint32_t written_version(const GraphDef& def) {
  const bool has_functions =
      std::any_of(def.nodes.begin(), def.nodes.end(), [](const NodeDef& node) { return !node.function.empty(); });
  return has_functions ? std::max(def.version, GraphDef::functions_version) : def.version;
}

GraphDef to_graph_def(const Graph& graph) { return detail::GraphDefBuilder(*graph.store()).build(); }

GraphDef to_graph_def(const GraphStore& graph, std::size_t first) {
  return detail::GraphDefBuilder(graph).build_nodes(graph.nodes(), first);
}

GraphDef without_places(GraphDef def) {
  for (NodeDef& node : def.nodes) {
    node.file.clear();
    node.line = 0;
  }
  return def;
}

}  // namespace dflow
