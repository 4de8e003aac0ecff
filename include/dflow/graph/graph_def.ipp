#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <unordered_map>

namespace dflow {

DFLOW_INLINE bool operator==(const NodeDef& a, const NodeDef& b) {
  return a.name == b.name && a.op == b.op && a.device == b.device && a.types == b.types && a.inputs == b.inputs &&
         a.colocated_with == b.colocated_with && a.function == b.function && a.file == b.file && a.line == b.line &&
         std::equal(a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && attr_equal(x.second, y.second); });
}

namespace detail {

/// Writes what a node is by itself; keeps the default attributes of each op that it has met.
class NodeDefWriter {
 public:
  NodeDef write(const Node& node) {
    NodeDef def;
    def.name = node.name;
    def.op = node.op->name;
    for (std::size_t i = 0; i < node.op->type_params.size(); ++i) {
      def.types.emplace_back(node.op->type_params[i].name, node.types[i]);
    }
    if (node.attrs != nullptr) add_attrs(node, def);
    if (node.where.line() != 0) {
      def.file = node.where.file_name();
      def.line = node.where.line();
    }
    return def;
  }

  static std::string edge_name(const std::string& source, std::int32_t index) {
    return index == 0 ? source : str_cat(source, ":", index);
  }

 private:
  void add_attrs(const Node& node, NodeDef& def) {
    const std::vector<AttrValue>& defaults = defaults_of(*node.op);
    for (std::size_t i = 0; i < defaults.size(); ++i) {
      const AttrField& field = node.op->attr_fields[i];
      AttrValue value = field.get(node.attrs.get());
      if (!attr_equal(value, defaults[i])) def.attrs.emplace_back(field.name, std::move(value));
    }
  }

  const std::vector<AttrValue>& defaults_of(const OpDef& op) {
    const auto [found, is_new] = defaults_.try_emplace(&op);
    if (is_new && !op.attr_fields.empty()) {
      const std::shared_ptr<void> attrs = op.make_attrs();
      for (const AttrField& field : op.attr_fields) found->second.push_back(field.get(attrs.get()));
    }
    return found->second;
  }

  std::unordered_map<const OpDef*, std::vector<AttrValue>> defaults_;
};

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

DFLOW_INLINE std::uint32_t written_version(const GraphDef& def) {
  const bool has_functions =
      std::any_of(def.nodes.begin(), def.nodes.end(), [](const NodeDef& node) { return !node.function.empty(); });
  return has_functions ? std::max(def.version, GraphDef::functions_version) : def.version;
}

DFLOW_INLINE GraphDef to_graph_def(const Graph& graph) { return detail::GraphDefBuilder(*graph.store()).build(); }

DFLOW_INLINE GraphDef to_graph_def(const GraphStore& graph, std::size_t first) {
  return detail::GraphDefBuilder(graph).build_nodes(graph.nodes(), first);
}

DFLOW_INLINE StepGraphDef to_step_graph_def(const StepGraph& part) {
  if (!part.feeds.empty() || !part.fetches.empty()) {
    throw_error(invalid_argument("a part for another task can have no feeds or fetches"));
  }
  using detail::NodeDefWriter;
  NodeDefWriter writer;
  StepGraphDef def;
  def.graph.nodes.reserve(part.nodes.size());
  for (const StepNode& node : part.nodes) {
    NodeDef& written = def.graph.nodes.emplace_back(writer.write(*node));
    written.inputs.reserve(node.num_inputs + node.num_controls);
    for (const StepEndpoint input : part.inputs_of(node)) {
      written.inputs.push_back(NodeDefWriter::edge_name(part.node(input.node)->name, input.index));
    }
    for (const StepNodeId input : part.controls_of(node)) written.inputs.push_back("^" + part.node(input)->name);
  }
  for (const StepNodeId target : part.targets) def.targets.push_back(part.node(target)->name);
  return def;
}

}  // namespace dflow
