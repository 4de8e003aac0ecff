#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/graph/attr_value.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/op/merge.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace dflow {

namespace detail {

/// Appends copies of nodes of one graph to another, or to the same, node by node in the order of their ids.
class GraphMerger {
 public:
  GraphMerger(GraphStore& into, const GraphStore& from, const EdgeMap& map, std::string_view function,
              std::source_location where)
      : into_(into), from_(from), nodes_(from.nodes()), function_(function), where_(where), outer_(into.scope()) {
    for (const auto& [edge, instead] : map.pairs()) {
      require_edge(from_, edge, "an edge that is mapped (one of the graph that is merged: its `output(name)`)");
      require_edge(into_, instead, "an edge that is read instead");
      if (mapped_.try_emplace(edge.endpoint(), Mapped{instead}).second) continue;
      fail(str_cat("'", edge.name(), "' is mapped twice"));
    }
    copies_.resize(nodes_.size());
  }

  /// All nodes and collections.
  std::vector<NodeId> merge(std::string_view prefix) {
    if (nodes_.size() > NodeId::max_position - into_.num_appended())
      fail("the graphs have more nodes than one can have");
    const auto collections = from_.collections();
    GraphStore::Draft draft(into_);
    enter_prefix(prefix);
    rename_frames();
    for (const NodeId id : nodes_.indices()) append(id);
    for (const auto& [edge, mapped] : mapped_) {
      if (!mapped.is_used) fail(str_cat("no node reads '", name_of(edge), "'"));
    }
    for (const auto& [name, members] : collections) {
      for (const NodeId id : members) {
        if (id.position() < nodes_.size()) into_.add_to_collection(name, copies_[id.position()]);
      }
    }
    finish();
    draft.publish();
    return std::move(copies_);
  }

  /// For one graph: copies the nodes that lie between the mapped edges and `edges`. All other nodes stand for
  /// themselves.
  std::vector<AnyOutput> substitute(std::span<const AnyOutput> edges, std::string_view prefix) {
    find_changed();
    find_needed(edges);
    GraphStore::Draft draft(into_);
    enter_prefix(prefix);
    rename_frames();
    for (const NodeId id : nodes_.indices()) {
      if (is_changed_[id.position()] && is_needed_[id.position()]) {
        append(id);
      } else {
        copies_[id.position()] = id;
      }
    }
    std::vector<AnyOutput> copies;
    for (const AnyOutput& edge : edges) copies.emplace_back(&into_, copy_of(edge.endpoint()));
    finish();
    draft.publish();
    return copies;
  }

  const std::string& prefix() const noexcept { return prefix_; }

 private:
  struct Mapped {
    AnyOutput edge;
    bool is_used = false;
  };

  [[noreturn]] void fail(std::string_view message) const {
    throw_error(
        Status::invalid_argument(str_cat(function_, ": ", message)).with_location(outer_.where.value_or(where_)));
  }

  void require_edge(const GraphStore& graph, const AnyOutput& edge, std::string_view what) const {
    if (!edge.is_of(&graph)) fail(str_cat(what, edge.is_valid() ? " is of another graph" : " is empty"));
    const Endpoint endpoint = edge.endpoint();
    if (!endpoint.node.is_valid() || endpoint.node.position() >= graph.num_appended() || endpoint.index < 0 ||
        static_cast<std::size_t>(endpoint.index) >= graph.node(endpoint.node).outputs.size()) {
      fail(str_cat(what, " is none of its graph"));
    }
  }

  std::string name_of(Endpoint edge) const {
    const std::string& name = nodes_[edge.node].name;
    return edge.index == 0 ? name : str_cat(name, ":", edge.index);
  }

  void enter_prefix(std::string_view prefix) {
    if (prefix.empty()) return;
    check_node_name(prefix, function_, outer_.where.value_or(where_));
    prefix_ = into_.unique_name(prefix);
    outer_.name_prefix = prefix_ + "/";
  }

  /// A frame is known by its name: merged frames must not be taken for frames that are there.
  void rename_frames() {
    std::set<std::string, std::less<>> taken;
    for (const NodeId id : into_.nodes().indices()) {
      if (into_.node(id).op->role == OpRole::enter) taken.insert(frame_of(into_.node(id)));
    }
    for (const NodeId id : nodes_.indices()) {
      if (nodes_[id].op->role != OpRole::enter) continue;
      const auto [frame, is_new] = frames_.try_emplace(frame_of(nodes_[id]));
      if (!is_new) continue;
      const std::string name = prefix_.empty() ? frame->first : str_cat(prefix_, "/", frame->first);
      frame->second = name;
      for (int suffix = 1; !taken.insert(frame->second).second; ++suffix) frame->second = str_cat(name, "_", suffix);
    }
  }

  static std::string frame_of(const Node& enter) {
    return std::get<std::string>(attr_of(enter, enter.op->attr_fields[0]));
  }

  Endpoint copy_of(Endpoint edge) {
    if (const auto mapped = mapped_.find(edge); mapped != mapped_.end()) {
      mapped->second.is_used = true;
      return mapped->second.edge.endpoint();
    }
    return {copies_[edge.node.position()], edge.index};
  }

  void append(NodeId id) {
    const Node& node = nodes_[id];
    try {
      std::vector<AnyOutput> inputs;
      inputs.reserve(node.inputs.size());
      for (const Endpoint input : node.inputs) inputs.emplace_back(&into_, copy_of(input));
      NodeRequest request;
      request.op = node.op;
      request.inputs = inputs;
      request.types = node.types;
      request.attrs = attrs_of(node);
      request.name = node.name;
      request.where = node.where;
      const ScopeGuard guard = into_.enter(scope_of(node));
      copies_[id.position()] = append_node(into_, request);
    } catch (const Error& error) {
      const Status& status = error.status();
      throw_error(Status(status.code(), str_cat(function_, ": ", status.message(), " (built at ",
                                                node.where.file_name(), ":", node.where.line(), ")"))
                      .with_node(node.op->name, node.name)
                      .with_location(outer_.where.value_or(where_)));
    }
  }

  GraphStore::Scope scope_of(const Node& node) const {
    GraphStore::Scope scope = outer_;
    const bool is_outside = !node.function.is_valid() && node.op->role != OpRole::variable;
    if (!is_outside) scope.control_inputs.clear();  // the call waits
    if (node.function.is_valid()) scope.function = copies_[node.function.position()];
    for (const NodeId control : node.control_inputs) scope.control_inputs.push_back(copies_[control.position()]);
    if (node.colocated_with.is_valid()) {
      scope.colocate(copies_[node.colocated_with.position()]);
      scope.device = node.device;
    } else if (!node.device.empty()) {
      const DeviceName device = DeviceName::parse(node.device);
      scope.device = (scope.device.empty() ? device : DeviceName::parse(scope.device).merged_with(device)).to_string();
    }
    return scope;
  }

  /// The node's attributes, shared unless they contain a name that has changed.
  std::shared_ptr<const void> attrs_of(const Node& node) const {
    const OpRole role = node.op->role;
    const bool has_names = calls_functions(role) || role == OpRole::kept_value || role == OpRole::enter;
    if (!has_names) return node.attrs;
    std::shared_ptr<void> attrs = node.op->make_attrs();
    for (const AttrField& field : node.op->attr_fields) {
      AttrValue value = attr_of(node, field);
      if (auto* function = std::get_if<FunctionName>(&value)) rename(function->name);
      if (auto* names = std::get_if<std::vector<std::string>>(&value)) {
        for (std::string& name : *names) rename(name);
      }
      if (auto* name = std::get_if<std::string>(&value)) {
        if (role == OpRole::kept_value) rename(*name);
        if (role == OpRole::enter) *name = frames_.at(*name);
      }
      field.set(attrs.get(), value);
    }
    return attrs;
  }

  /// A node of the graph that is merged has the name of its copy.
  void rename(std::string& name) const {
    const NodeId id = from_.find(name);
    if (!id.is_valid() || id.position() >= nodes_.size()) return;
    const NodeId copy = copies_[id.position()];
    if (copy.is_valid()) {
      name = into_.node(copy).name;
    } else if (is_changed_.empty() || (is_changed_[id.position()] && is_needed_[id.position()])) {
      name = outer_.name_prefix + name;  // a later node, whose copy gets this name
    }
  }

  void finish() {
    if (!prefix_.empty()) into_.reserve_scope_name(prefix_);
    for (const NodeId id : copies_) {
      if (id.is_valid()) into_.reserve_scopes_of(into_.node(id).name);
    }
    // Random ops built from now on must not draw a seed that one of the copies already has.
    into_.count_random_ops(nodes_.size());
  }

  /// Finds the nodes that depend on a mapped edge. A body with a changed node is changed as a whole, and so are its
  /// calls.
  void find_changed() {
    std::vector<bool> of_function(nodes_.size());  // by the nodes that begin them
    is_changed_.resize(nodes_.size());
    const auto is_changed = [&](const Node& node) {
      for (const Endpoint input : node.inputs) {
        if (mapped_.contains(input) || is_changed_[input.node.position()]) return true;
      }
      for (const NodeId control : node.control_inputs) {
        if (is_changed_[control.position()]) return true;
      }
      if (!calls_functions(node.op->role)) return false;
      const std::vector<std::string> names = called_functions(node);
      return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        const NodeId begin = from_.find(name);
        return begin.is_valid() && begin.position() < nodes_.size() && of_function[begin.position()];
      });
    };
    for (const NodeId id : nodes_.indices()) {
      if (!is_changed(nodes_[id])) continue;
      is_changed_[id.position()] = true;
      for (NodeId f = nodes_[id].function; f.is_valid(); f = nodes_[f].function) of_function[f.position()] = true;
    }
    for (const NodeId id : nodes_.indices()) {
      if (of_function[id.position()]) is_changed_[id.position()] = true;
      const NodeId function = nodes_[id].function;
      if (function.is_valid() && is_changed_[function.position()]) is_changed_[id.position()] = true;
    }
  }

  /// Finds the changed nodes that the edges depend on, with the bodies that they call.
  void find_needed(std::span<const AnyOutput> edges) {
    is_needed_.resize(nodes_.size());
    std::unordered_map<NodeId, std::vector<NodeId>> bodies;
    for (const NodeId id : nodes_.indices()) {
      if (nodes_[id].function.is_valid()) bodies[nodes_[id].function].push_back(id);
    }
    std::vector<NodeId> pending;
    const auto need = [&](NodeId id) {
      if (!id.is_valid() || id.position() >= nodes_.size() || is_needed_[id.position()]) return;
      if (!is_changed_[id.position()]) return;
      is_needed_[id.position()] = true;
      pending.push_back(id);
    };
    for (const AnyOutput& edge : edges) {
      if (!mapped_.contains(edge.endpoint())) need(edge.node_id());
    }
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      const Node& node = nodes_[id];
      for (const Endpoint input : node.inputs) {
        if (!mapped_.contains(input)) need(input.node);
      }
      for (const NodeId control : node.control_inputs) need(control);
      need(node.colocated_with);
      need(node.function);
      if (calls_functions(node.op->role)) {
        for (const std::string& name : called_functions(node)) need(from_.find(name));
      }
      if (node.op->role == OpRole::function) {
        for (const NodeId each : bodies[id]) need(each);
      }
      if (node.op->role == OpRole::merge) {
        for (const NodeId each : from_.next_iterations(id)) need(each);
      }
    }
  }

  GraphStore& into_;
  const GraphStore& from_;
  const GraphStore::Nodes nodes_;  ///< as many as there were: the two may be one graph
  std::string_view function_;
  std::source_location where_;
  GraphStore::Scope outer_;
  std::string prefix_;
  std::unordered_map<Endpoint, Mapped, EndpointHash> mapped_;
  std::map<std::string, std::string, std::less<>> frames_;  ///< by the names they had
  std::vector<NodeId> copies_;                              ///< by the positions of the originals
  std::vector<bool> is_changed_, is_needed_;
};

}  // namespace detail

EdgeMap& EdgeMap::add(const AnyOutput& edge, const AnyOutput& instead) {
  pairs_.emplace_back(edge, instead);
  return *this;
}

Operation MergedGraph::operation(const Operation& of) const {
  if (!of.is_of(from_)) {
    throw_error(
        Status::invalid_argument(of.is_valid() ? "the handle is not of the graph that was merged" : "an empty handle"));
  }
  if (!of.node_id().is_valid() || of.node_id().position() >= copies_.size()) {
    throw_error(Status::not_found("the node was built after the graph was merged"));
  }
  return {into_, copies_[of.node_id().position()]};
}

AnyOutput MergedGraph::output(const AnyOutput& of) const {
  return {into_, {operation(of.operation()).node_id(), of.endpoint().index}};
}

Operation MergedGraph::operation(std::string_view name) const {
  const NodeId id = from_.get()->find(name);
  if (id.is_valid() && id.position() < copies_.size()) return {into_, copies_[id.position()]};
  throw_error(Status::not_found(str_cat("the graph that was merged has no node named '", name, "'")));
}

AnyOutput MergedGraph::output(std::string_view name) const {
  const std::size_t colon = name.rfind(':');
  std::size_t index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string_view::npos) {
      throw_error(Status::invalid_argument(str_cat("'", name, "' is not an edge name")));
    }
    for (const char c : digits) index = index * 10 + static_cast<std::size_t>(c - '0');
  }
  const Operation of = operation(name.substr(0, colon));
  if (index >= of.node().outputs.size()) {
    throw_error(Status::not_found(str_cat("node '", of.name(), "' has no output ", index)));
  }
  return {into_, {of.node_id(), static_cast<std::int32_t>(index)}};
}

MergedGraph merge(Graph& into, const Graph& from, const GraphMergeOptions& options, std::source_location where) {
  detail::GraphMerger merger(*into.store(), *from.store(), options.input_map, "merge", where);
  std::vector<NodeId> copies = merger.merge(options.prefix);
  return {from.store(), into.store(), std::move(copies), merger.prefix()};
}

std::vector<AnyOutput> detail::any_substitute(std::span<const AnyOutput> edges, const EdgeMap& map,
                                              std::string_view name, std::source_location where) {
  for (const AnyOutput& edge : edges) {
    if (edge.is_valid() && edge.shares_graph(edges.front())) continue;
    throw_error(
        Status::invalid_argument(str_cat("substitute: an edge ", edge.is_valid() ? "is of another graph" : "is empty"))
            .with_location(where));
  }
  GraphStore& graph = *edges.front().graph();
  return GraphMerger(graph, graph, map, "substitute", where).substitute(edges, name);
}

}  // namespace dflow
