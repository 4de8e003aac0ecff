#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/node_def_writer.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/passes/functions.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/passes/step_graph_def.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace dflow {

namespace detail {

/// Writes one part: its nodes, and the bodies that they call as functions. `attach_bodies` undoes that.
class StepGraphWriter {
 public:
  StepGraphDef write(const StepGraph& part) {
    const NodeNames names = write_nodes(part, {}, {});
    for (const StepNodeId target : part.targets) def_.targets.push_back(names[target]);
    return std::move(def_);
  }

 private:
  using NodeNames = IndexedVector<StepNodeId, std::string>;
  /// An edge as its readers name it, and taken apart.
  struct EdgeName {
    std::string node;
    std::int32_t output = 0;
    std::string text() const { return NodeDefWriter::edge_name(node, output); }
  };
  /// A body that is written.
  struct Written {
    std::string function;
    std::vector<EdgeName> fetches;
  };
  struct EdgeOrder {
    bool operator()(StepEndpoint a, StepEndpoint b) const noexcept {
      return std::pair(a.node, a.index) < std::pair(b.node, b.index);
    }
  };

  /// The name, or another one if several bodies of one function are written, because they read different edges.
  std::string unique(const std::string& name) {
    std::string candidate = name;
    for (int copy = 2; !used_.insert(candidate).second; ++copy) candidate = step_node_copy(name, copy);
    return candidate;
  }

  /// Names of edges of one body, or of the part.
  struct Edges {
    const StepGraph& part;
    EdgePositions<StepNodeId> feeds;
    std::span<const std::string> arguments;  ///< by feed
    NodeNames nodes;
    std::map<StepEndpoint, std::string, EdgeOrder> kept;  ///< calls' outputs for kept values

    EdgeName name(StepEndpoint edge) const {
      if (const std::int32_t fed = feeds.find(edge); fed >= 0) return {arguments[static_cast<std::size_t>(fed)], 0};
      const auto found = kept.find(edge);
      return found != kept.end() ? EdgeName{found->second, 0} : EdgeName{nodes[edge.node], edge.index};
    }
  };

  NodeNames write_nodes(const StepGraph& part, const std::string& function, std::span<const std::string> arguments,
                        Written* body = nullptr) {
    Edges edges{part, {part.feeds, part.nodes.size()}, arguments, NodeNames(part.nodes.size()), {}};
    for (const StepNodeId id : part.nodes.indices()) {
      const StepNode& node = part.node(id);
      if (node.is_fed_only) continue;
      NodeDef def = writer_.write(*node);
      def.name = edges.nodes[id] = unique(node->name);
      def.function = function;
      def.inputs.reserve(node.num_inputs + node.num_controls);
      for (const StepEndpoint input : part.inputs_of(node)) def.inputs.push_back(edges.name(input).text());
      for (const StepNodeId input : part.controls_of(node)) {
        if (!part.node(input).is_fed_only) def.inputs.push_back("^" + edges.nodes[input]);
      }
      if (part.call_of(node) == nullptr) {
        def_.graph.nodes.push_back(std::move(def));
      } else {
        write_call(edges, id, std::move(def));
      }
    }
    if (body != nullptr) {
      for (const StepEndpoint fetch : part.fetches) body->fetches.push_back(edges.name(fetch));
    }
    return std::move(edges.nodes);
  }

  void write_call(Edges& edges, StepNodeId id, NodeDef def) {
    const StepNode& node = edges.part.node(id);
    const StepCall& call = *edges.part.call_of(node);
    const std::vector<std::string> functions = called_functions(*node);
    std::vector<const Written*> bodies;
    for (std::size_t b = 0; b < functions.size(); ++b) {
      const Written* const around = find_open(call.around_of(b));
      bodies.push_back(around != nullptr ? around
                                         : &write_body(call.bodies[b], functions[b], num_results(node, call, b)));
    }
    auto next = bodies.begin();
    for (auto& [name, value] : def.attrs) {
      if (auto* const function = std::get_if<FunctionName>(&value)) function->name = (*next++)->function;
      if (node.op->role == OpRole::call && name == "captured") value = std::string();  // they are arguments now
      if (auto* const list = std::get_if<std::vector<std::string>>(&value)) {
        for (std::string& function : *list) function = (*next++)->function;
      }
    }
    const std::size_t first = num_results(node, call);
    for (std::size_t k = 0; k < call.kept.size(); ++k) {
      NodeDef kept = kept_node(call.kept[k], node->outputs[first + k].dtype, node.op->role == OpRole::loop);
      if (const auto [body, result] = call.kept[k]; result >= 0) {
        const std::size_t fetch = num_results(node, call, body) + static_cast<std::size_t>(result);
        if (call.bodies[body] == nullptr) {
          unnamed_[call.around_of(body)].push_back({def_.graph.nodes.size(), fetch});
        } else {
          set_kept_edge(kept, bodies[body]->fetches[fetch]);
        }
      }
      kept.name = unique(str_cat(def.name, "/kept"));
      kept.inputs = {first == 0 ? "^" + def.name : def.name};
      kept.function = def.function;
      edges.kept[{id, static_cast<std::int32_t>(first + k)}] = kept.name;
      def_.graph.nodes.push_back(std::move(kept));
    }
    def_.graph.nodes.push_back(std::move(def));
  }

  /// The number of results without kept values: of the node, and of body `b` for the node.
  static std::size_t num_results(const StepNode& node, const StepCall& call) {
    return node->outputs.size() - call.kept.size();
  }
  static std::size_t num_results(const StepNode& node, const StepCall& call, std::size_t b) {
    return node.op->role == OpRole::loop && b == 0 ? 1 : num_results(node, call);
  }

  static NodeDef kept_node(const StepCall::Kept& kept, DType dtype, bool is_of_loop) {
    NodeDef def;
    if (is_of_loop) {
      def.op = kept.result < 0 ? KeptCount::name : KeptList::name;
    } else {
      def.op = KeptValue::name;
      def.types.emplace_back(KeptValue::type_names[0], dtype);
    }
    return def;
  }

  static void set_kept_edge(NodeDef& kept, const EdgeName& edge) {
    kept.attrs = {{"node", edge.node}, {"output", std::int64_t{edge.output}}};
  }

  /// Once, however many call it.
  const Written& write_body(const std::shared_ptr<const StepGraph>& body, const std::string& name,
                            std::size_t num_results) {
    if (const auto found = written_.find(body); found != written_.end()) return found->second;
    Written written{unique(name), {}};
    if (body->recursion >= 0) open_[body->recursion] = &written;
    add(FunctionBegin::name, written.function, {});
    std::vector<std::string> arguments;
    for (const StepEndpoint feed : body->feeds) {
      const StepNode& fed = body->node(feed.node);
      const bool is_argument = fed.op->role == OpRole::argument;
      arguments.push_back(unique(is_argument ? fed->name : str_cat(written.function, "/capture")));
      const OutputInfo& info = body->output(feed);
      NodeDef& argument = add(FunctionArgument::name, arguments.back(), written.function);
      argument.types.emplace_back(FunctionArgument::type_names[0], info.dtype);
      argument.attrs = {{"number", static_cast<std::int64_t>(arguments.size() - 1)}, {"shape", info.shape}};
    }
    const NodeNames names = write_nodes(*body, written.function, arguments, &written);
    NodeDef& results = add(FunctionResults::name, unique(str_cat(written.function, "/results")), written.function);
    for (std::size_t i = 0; i < num_results; ++i) results.inputs.push_back(written.fetches[i].text());
    for (const StepNodeId target : body->targets) results.inputs.push_back("^" + names[target]);
    open_.erase(body->recursion);
    for (const Unnamed& each : unnamed_[body->recursion]) {
      set_kept_edge(def_.graph.nodes[each.node], written.fetches[each.fetch]);
    }
    unnamed_.erase(body->recursion);
    return written_.emplace(body, std::move(written)).first->second;
  }

  /// The body of this number if it is being written, and called in itself; null: none.
  const Written* find_open(std::int32_t recursion) const {
    const auto found = open_.find(recursion);
    return found == open_.end() ? nullptr : found->second;
  }

  NodeDef& add(std::string_view op, std::string name, std::string function) {
    NodeDef& def = def_.graph.nodes.emplace_back();
    def.op = op;
    def.name = std::move(name);
    def.function = std::move(function);
    return def;
  }

  StepGraphDef def_;
  NodeDefWriter writer_;
  std::unordered_set<std::string> used_;
  std::map<std::shared_ptr<const StepGraph>, Written> written_;
  std::map<std::int32_t, const Written*> open_;  ///< by `recursion`
  /// A node for a value that a call keeps of a body that the call stands in: the names of the body's fetches come
  /// later.
  struct Unnamed {
    std::size_t node;  ///< among those of the graph
    std::size_t fetch;
  };
  std::map<std::int32_t, std::vector<Unnamed>> unnamed_;  ///< by `recursion`
};

}  // namespace detail

StepGraphDef to_step_graph_def(const StepGraph& part) {
  if (!part.feeds.empty() || !part.fetches.empty()) {
    throw_error(Status::invalid_argument("a part for another task can have no feeds or fetches"));
  }
  return detail::StepGraphWriter().write(part);
}

StepGraph part_of_step(const GraphStore& graph, const StepGraphDef& def, std::int32_t placed_on) {
  std::vector<NodeId> targets;
  targets.reserve(def.targets.size());
  for (const std::string& target : def.targets) {
    targets.push_back(graph.find(target));
    if (targets.back().is_valid() && !graph.node(targets.back()).function.is_valid()) continue;
    throw_error(Status::invalid_argument(str_cat("target '", target, "' is not in the part")));
  }
  PruneScratch scratch;
  const auto place = [&](NodeId, StepNode& node) { node.placed_on = placed_on; };
  StepGraph part = prune(graph, {}, {}, targets, scratch, place);
  attach_bodies(graph, part, scratch, place, {.is_part = true});
  return part;
}

}  // namespace dflow
