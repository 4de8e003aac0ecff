#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/node_def_writer.hpp>
#include <dflow/models/model_def.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/ops/state/variable.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

namespace dflow::detail {

// ---- what signatures reach ----

/// Finds the nodes that a model needs: those between the inputs and the outputs of each signature.
class SignatureReach {
 public:
  explicit SignatureReach(const GraphStore& graph) : graph_(graph), nodes_(graph.nodes()), is_needed_(nodes_.size()) {
    for (const NodeId id : nodes_.indices()) {
      if (nodes_[id].function.is_valid()) bodies_[nodes_[id].function].push_back(id);
    }
  }

  /// Errors: InvalidArgument for an edge that is none of the graph's, of a function's body, or a handle.
  void add(const Signature& signature) {
    Edges fed;
    for (const NamedEdge& input : signature.inputs) {
      const Endpoint edge = checked(signature, input);
      fed.emplace(edge.node, edge.index);
      fed_.emplace(edge.node, edge.index);
    }
    std::vector<NodeId> first;
    for (const NamedEdge& output : signature.outputs) {
      const Endpoint edge = checked(signature, output);
      if (!fed.contains({edge.node, edge.index})) first.push_back(edge.node);
    }
    walk(std::move(first), fed, [&](const Node& node) { check_state(signature, node); });
  }

  /// Adds a node that no signature reaches, with all that it needs.
  void add_node(NodeId id) {
    walk({id}, {}, [](const Node&) {});
  }

  bool is_needed(NodeId id) const { return id.position() < nodes_.size() && is_needed_[id.position()]; }
  const GraphStore::Nodes& nodes() const noexcept { return nodes_; }
  /// Inputs of signatures, in the order of nodes.
  const auto& fed() const noexcept { return fed_; }

 private:
  using Edges = std::set<std::pair<NodeId, std::int32_t>>;

  /// Marks nodes and all that they need, up to edges that are fed.
  template <class Check>
  void walk(std::vector<NodeId> first, const Edges& fed, Check&& check) {
    std::vector<NodeId> pending;
    std::vector<bool> is_visited(nodes_.size());
    const auto visit = [&](NodeId id) {
      if (!id.is_valid() || id.position() >= nodes_.size() || is_visited[id.position()]) return;
      is_visited[id.position()] = true;
      pending.push_back(id);
    };
    const auto visit_edge = [&](Endpoint edge) {
      if (!fed.contains({edge.node, edge.index})) visit(edge.node);
    };
    std::for_each(first.begin(), first.end(), visit);
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      check(nodes_[id]);
      is_needed_[id.position()] = true;
      for_each_source(id, visit_edge, visit);
    }
  }

  template <class VisitEdge, class VisitNode>
  void for_each_source(NodeId id, VisitEdge&& visit_edge, VisitNode&& visit) const {
    const Node& node = nodes_[id];
    for (const Endpoint input : node.inputs) visit_edge(input);
    for (const NodeId control : node.control_inputs) visit(control);
    if (node.function.is_valid()) visit(node.function);
    if (calls_functions(node.op->role)) {
      for (const std::string& name : called_functions(node)) visit(graph_.find(name));
    }
    if (node.op->role == OpRole::function) {
      const auto body = bodies_.find(id);
      if (body != bodies_.end()) std::for_each(body->second.begin(), body->second.end(), visit);
    }
    if (node.op->role == OpRole::merge) {
      for (const NodeId each : graph_.next_iterations(id)) visit(each);
    }
  }

  Endpoint checked(const Signature& signature, const NamedEdge& named) const {
    const auto fail = [&](std::string_view what) {
      throw_error(
          Status::invalid_argument(str_cat("signature '", signature.name, "': the edge of '", named.name, "' ", what)));
    };
    if (!named.edge.is_valid()) fail("is empty");
    if (!named.edge.is_of(&graph_)) fail("is of another graph than the session's");
    const Endpoint edge = named.edge.endpoint();
    if (edge.node.position() >= nodes_.size()) fail("is not yet in the graph");
    if (nodes_[edge.node].function.is_valid()) fail("is in the body of a function");
    if (!is_element(named.edge.dtype())) fail(str_cat("carries ", dtype_name(named.edge.dtype()), ", not a tensor"));
    return edge;
  }

  /// Errors: InvalidArgument for a resource whose content a model does not hold.
  static void check_state(const Signature& signature, const Node& node) {
    if (!node.op->is_stateful || node.op->role != OpRole::ordinary) return;
    if (node.op == &op_def<HashTableOp> || node.op == &op_def<MutableHashTableOp>) return;
    if (std::ranges::none_of(node.outputs, [](const OutputInfo& out) { return out.dtype == DType::resource; })) return;
    throw_error(Status::invalid_argument(str_cat("signature '", signature.name, "' reaches '", node.name,
                                                 "', whose content a model does not hold: make an edge behind it an "
                                                 "input of the signature"))
                    .with_node(node.op->name, node.name)
                    .with_location(node.where));
  }

  const GraphStore& graph_;
  const GraphStore::Nodes nodes_;
  std::vector<bool> is_needed_;
  Edges fed_;
  std::unordered_map<NodeId, std::vector<NodeId>> bodies_;
};

// ---- from a graph to data ----

/// Makes the data of a model: nodes that are needed, and placeholders for inputs that are computed in the graph.
class ModelExtract {
 public:
  ModelExtract(const GraphStore& graph, std::span<const Signature> signatures)
      : graph_(graph), signatures_(signatures), reach_(graph) {
    for (const Signature& signature : signatures) reach_.add(signature);
  }

  SignatureReach& reach() noexcept { return reach_; }
  std::vector<NodeId> needed(std::initializer_list<const OpDef*> ops) const {
    std::vector<NodeId> found;
    for (const NodeId id : reach_.nodes().indices()) {
      if (reach_.is_needed(id) && std::ranges::count(ops, reach_.nodes()[id].op) != 0) found.push_back(id);
    }
    return found;
  }

  ModelDef extract() {
    ModelDef def;
    GraphDef all = to_graph_def(graph_, 0);
    def.graph.version = all.version;
    def.graph.seed = all.seed;
    replace_fed_nodes(def.graph);
    for (const NodeId id : reach_.nodes().indices()) {
      if (!reach_.is_needed(id)) continue;
      NodeDef& node = all.nodes[id.position()];
      node.device.clear();
      node.colocated_with.clear();
      for (std::string& input : node.inputs) {
        if (const auto found = renamed_.find(input); found != renamed_.end()) input = found->second;
      }
      rename_captured(node);
      def.graph.nodes.push_back(std::move(node));
    }
    def.graph = without_places(std::move(def.graph));
    for (const auto& [name, members] : graph_.collections()) {
      std::vector<std::string> kept;
      for (const NodeId id : members) {
        if (reach_.is_needed(id)) kept.push_back(graph_.node(id).name);
      }
      if (!kept.empty()) def.graph.collections.emplace_back(name, std::move(kept));
    }
    for (const Signature& signature : signatures_) {
      ModelDef::Signature& named = def.signatures.emplace_back();
      named.name = signature.name;
      for (const NamedEdge& input : signature.inputs) named.inputs.emplace_back(input.name, name_of(input.edge));
      for (const NamedEdge& output : signature.outputs) named.outputs.emplace_back(output.name, name_of(output.edge));
    }
    check_signatures(def.signatures);
    return def;
  }

 private:
  std::string name_of(const AnyOutput& edge) const {
    const std::string name = edge.name();
    const auto found = renamed_.find(name);
    return found == renamed_.end() ? name : found->second;
  }

  /// An input that no signature computes becomes a placeholder, under the name of its node if that is free.
  void replace_fed_nodes(GraphDef& def) {
    std::set<std::string, std::less<>> taken;
    for (const NodeId id : reach_.nodes().indices()) {
      if (reach_.is_needed(id)) taken.insert(reach_.nodes()[id].name);
    }
    for (const auto& [id, index] : reach_.fed()) {
      if (reach_.is_needed(id)) continue;
      const Node& node = reach_.nodes()[id];
      const OutputInfo& output = node.outputs[static_cast<std::size_t>(index)];
      NodeDef& fed = def.nodes.emplace_back();
      fed.name = node.name;
      for (int suffix = index; !taken.insert(fed.name).second; ++suffix) fed.name = str_cat(node.name, "_", suffix);
      fed.op = Placeholder::name;
      fed.types = {{std::string(Placeholder::type_names[0]), output.dtype}};
      fed.attrs = {{"shape", output.shape}};
      renamed_.emplace(NodeDefWriter::edge_name(node.name, index), fed.name);
    }
  }

  /// A call inside of its own function names the edges that the body captures: "node:0;other:1".
  void rename_captured(NodeDef& node) const {
    if (renamed_.empty() || node.op != CallFunction::name) return;
    for (auto& [name, value] : node.attrs) {
      if (name != "captured") continue;
      std::string renamed;
      for (std::string_view rest = std::get<std::string>(value); !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(';'));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        const bool is_first = one.ends_with(":0");
        const auto found = renamed_.find(is_first ? one.substr(0, one.size() - 2) : one);
        renamed += str_cat(renamed.empty() ? "" : ";", found == renamed_.end() ? one : str_cat(found->second, ":0"));
      }
      value = std::move(renamed);
    }
  }

  const GraphStore& graph_;
  std::span<const Signature> signatures_;
  SignatureReach reach_;
  std::map<std::string, std::string, std::less<>> renamed_;  ///< edges that are read from placeholders now
};

NodeDef constant_def(std::string name, const AnyTensor& value) {
  NodeDef def;
  def.name = std::move(name);
  def.op = Const::name;
  def.types = {{std::string(Const::type_names[0]), value.dtype()}};
  def.attrs = {{"value", value}};
  return def;
}

/// Names that no node of a graph has. Errors: InvalidArgument if two nodes have one name: a search for a name beside
/// each of many such nodes would be long.
class FreeNames {
 public:
  explicit FreeNames(const GraphDef& def) {
    for (const NodeDef& node : def.nodes) {
      if (taken_.insert(node.name).second) continue;
      throw_error(
          Status::invalid_argument(str_cat("two nodes are named '", node.name, "'")).with_node(node.op, node.name));
    }
  }
  std::string take(const std::string& wanted) {
    std::string name = wanted;
    for (int suffix = 1; !taken_.insert(name).second; ++suffix) name = str_cat(wanted, "_", suffix);
    return name;
  }
  bool has(std::string_view name) const { return taken_.contains(name); }

 private:
  std::set<std::string, std::less<>> taken_;
};

std::vector<std::string>& collection_of(GraphDef& def, std::string_view name) {
  for (auto& [each, members] : def.collections) {
    if (each == name) return members;
  }
  return def.collections.emplace_back(std::string(name), std::vector<std::string>()).second;
}

/// Adds the operation that fills a lookup table.
void add_table(GraphDef& def, FreeNames& names, const Node& table, const AnyTensor& keys, const AnyTensor& values) {
  NodeDef fill;
  fill.name = names.take(table.name + "/fill");
  fill.op = LookupTableImport::name;
  fill.types = {{std::string(LookupTableImport::type_names[0]), keys.dtype()},
                {std::string(LookupTableImport::type_names[1]), values.dtype()}};
  fill.inputs = {table.name};
  for (const auto& [what, tensor] : {std::pair("keys", &keys), std::pair("values", &values)}) {
    fill.inputs.push_back(names.take(str_cat(fill.name, "/", what)));
    def.nodes.push_back(constant_def(fill.inputs.back(), *tensor));
  }
  collection_of(def, ModelDef::table_initializers).push_back(fill.name);
  def.nodes.push_back(std::move(fill));
}

/// The edges of keys and values of a lookup table. The graph gets a node for them, once.
std::array<AnyOutput, 2> exported_table(GraphStore& graph, NodeId table) {
  const std::string name = graph.node(table).name + "/export";
  NodeId found = graph.find(name);
  const bool is_there = found.is_valid() && graph.node(found).op == &op_def<LookupTableExport> &&
                        graph.node(found).inputs[0].node == table;
  if (!is_there) {
    const LookupTableAttrs attrs = graph.node(table).attrs_as<MutableHashTableOp>();
    const ScopeGuard outside = graph.enter(GraphStore::Scope{});
    const ScopeGuard with = enter_colocation(graph, Operation(&graph, table));
    found = build<LookupTableExport>({AnyOutput(&graph, {table, 0})}, {.value_shape = attrs.value_shape},
                                     {.name = name}, two_types(attrs.key_dtype, attrs.value_dtype))
                .output(0)
                .node_id();
  }
  return {AnyOutput(&graph, {found, 0}), AnyOutput(&graph, {found, 1})};
}

ModelDef ModelDef::of(Session& session, std::span<const dflow::Signature> signatures, ModelMetadata metadata) {
  // A session has its graph to read it. The owner of the graph, who may build, makes models.
  GraphStore& graph = const_cast<GraphStore&>(*session.graph());
  ModelExtract model(graph, signatures);
  const std::vector<NodeId> variables = model.needed({&op_def<VariableOp>});
  const std::vector<NodeId> tables = model.needed({&op_def<HashTableOp>, &op_def<MutableHashTableOp>});
  ModelDef def = model.extract();
  std::erase_if(def.graph.collections, [](const auto& each) { return each.first == table_initializers; });

  std::vector<AnyOutput> read;
  read.reserve(variables.size());
  for (const NodeId id : variables) read.push_back(AnyVariable::of(Operation(&graph, id)).read_edge());
  for (const NodeId id : tables) {
    for (const AnyOutput& edge : exported_table(graph, id)) read.push_back(edge);
  }
  std::vector<AnyTensor> values(read.size());
  if (!read.empty()) session.run_erased({}, nullptr, {}, read, {}, values);
  FreeNames names(def.graph);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    def.values.push_back({graph.node(variables[i]).name, std::move(values[i])});
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::size_t at = variables.size() + 2 * i;
    add_table(def.graph, names, graph.node(tables[i]), values[at], values[at + 1]);
  }
  def.metadata = std::move(metadata);
  return def;
}

using ValuesByName = std::map<std::string_view, const NamedTensor*>;

ValuesByName by_name(std::span<const NamedTensor> values) {
  ValuesByName found;
  for (const NamedTensor& value : values) found.emplace(value.name, &value);
  return found;
}

ModelDef ModelDef::of(const Model& model, std::span<const dflow::Signature> signatures) {
  const GraphStore& graph = *model.graph().store();
  ModelExtract extract(graph, signatures);
  // A step that a signature runs needs filled tables.
  for (const NodeId fill : graph.collection(table_initializers)) {
    const std::vector<Endpoint>& inputs = graph.node(fill).inputs;
    if (!inputs.empty() && extract.reach().is_needed(inputs[0].node)) extract.reach().add_node(fill);
  }
  const std::vector<NodeId> variables = extract.needed({&op_def<VariableOp>});
  ModelDef def = extract.extract();
  const ValuesByName values = by_name(model.values());
  for (const NodeId id : variables) {
    const auto value = values.find(graph.node(id).name);
    if (value != values.end()) def.values.push_back(*value->second);
  }
  def.metadata = model.metadata();
  return def;
}

Model ModelDef::build_like(const Model& model, ModelDef def) {
  const OpsOfGraph ops(*model.graph().store());
  return build(std::move(def), ops.table(), model.options_);
}

void check_signatures(std::span<const ModelDef::Signature> signatures) {
  if (signatures.empty()) throw_error(Status::invalid_argument("a model has at least one signature"));
  std::set<std::string_view> names;
  for (const ModelDef::Signature& signature : signatures) {
    const auto fail = [&](const auto&... what) {
      throw_error(Status::invalid_argument(str_cat("signature '", signature.name, "' ", what...)));
    };
    if (signature.name.empty()) fail("has no name");
    if (!names.insert(signature.name).second) fail("is there twice");
    if (signature.outputs.empty()) fail("has no outputs");
    for (const auto& [edges, what] : {std::pair(&signature.inputs, "input"), std::pair(&signature.outputs, "output")}) {
      std::set<std::string_view> edge_names;
      for (const auto& [name, edge] : *edges) {
        if (name.empty()) fail("has an ", what, " without a name");
        if (!edge_names.insert(name).second) fail("has two ", what, "s named '", name, "'");
      }
    }
    std::map<std::string_view, std::string_view> fed;  // the inputs' names by their edges
    for (const auto& [name, edge] : signature.inputs) {
      const auto [other, is_new] = fed.emplace(edge, name);
      if (!is_new) fail("has the edge '", edge, "' for two inputs, '", other->second, "' and '", name, "'");
    }
  }
}

// ---- variables as constants, and with their values ----

/// "node" of "node" or "node:1". A control input, "^node", is no node's name.
std::string_view node_of_input(std::string_view input) { return input.substr(0, input.find(':')); }

/// The nodes that do more with a variable than read it, by the variable's name: the first of each.
std::map<std::string, const NodeDef*, std::less<>> other_users(const GraphDef& def) {
  std::set<std::string_view> variables;
  bool has_handle_arguments = false;
  for (const NodeDef& node : def.nodes) {
    if (node.op == VariableOp::name) variables.insert(node.name);
    has_handle_arguments = has_handle_arguments || (node.op == FunctionArgument::name && !node.types.empty() &&
                                                    node.types[0].second == DType::resource);
  }
  std::map<std::string, const NodeDef*, std::less<>> users;
  for (const NodeDef& node : def.nodes) {
    const bool reads = node.op == ReadVariable::name;
    const bool calls = node.op == CallFunction::name || node.op == If::name || node.op == Case::name ||
                       node.op == While::name;  // their bodies name what they capture
    if (reads || (calls && !has_handle_arguments)) continue;
    for (const std::string& input : node.inputs) {
      if (!variables.contains(node_of_input(input))) continue;
      users.try_emplace(std::string(node_of_input(input)), &node);
    }
  }
  return users;
}

void freeze_variables(ModelDef& def, WrittenVariables written) {
  const std::map<std::string, const NodeDef*, std::less<>> users = other_users(def.graph);
  if (written == WrittenVariables::refuse && !users.empty()) {
    const auto& [variable, user] = *users.begin();
    throw_error(Status::invalid_argument(str_cat("a signature does not only read variable '", variable, "': '",
                                                 user->name, "' uses it, so it cannot become a constant"))
                    .with_node(user->op, user->name));
  }
  const ValuesByName values = by_name(def.values);
  std::set<std::string, std::less<>> frozen;
  for (NodeDef& node : def.graph.nodes) {
    if (node.op != VariableOp::name || users.contains(node.name)) continue;
    const auto value = values.find(node.name);
    if (value == values.end()) {
      throw_error(Status::data_loss(str_cat("variable '", node.name, "' has no value")).with_node(node.op, node.name));
    }
    frozen.insert(node.name);
    node = constant_def(node.name, value->second->tensor);
  }
  std::erase_if(def.values, [&](const NamedTensor& value) { return frozen.contains(value.name); });
  for (NodeDef& node : def.graph.nodes) {
    if (node.op != ReadVariable::name) continue;
    const auto is_frozen = [&](const std::string& input) { return frozen.contains(node_of_input(input)); };
    if (std::ranges::none_of(node.inputs, is_frozen)) continue;
    node.op = Identity::name;
    for (auto& [name, dtype] : node.types) name = "T";
  }
  for (auto& [name, members] : def.graph.collections) {
    std::erase_if(members, [&](const std::string& member) { return frozen.contains(member); });
  }
  std::erase_if(def.graph.collections, [](const auto& each) { return each.second.empty(); });
}

std::vector<std::string> add_initial_values(ModelDef& def) {
  const ValuesByName values = by_name(def.values);
  FreeNames names(def.graph);
  std::vector<NodeDef> added;
  std::vector<std::string> assigns;
  for (const NodeDef& node : def.graph.nodes) {
    if (node.op != VariableOp::name) continue;
    const auto value = values.find(node.name);
    const DType dtype = node.types.empty() ? DType::invalid : node.types[0].second;
    if (value == values.end() || value->second->tensor.dtype() != dtype) {
      throw_error(
          Status::data_loss(str_cat("variable '", node.name, "' has no value of its element type ", dtype_name(dtype)))
              .with_node(node.op, node.name));
    }
    const auto add = [&](std::string name, std::string_view op, std::vector<std::string> inputs,
                         std::string_view type_name) {
      NodeDef& one = added.emplace_back();
      one.name = std::move(name);
      one.op = op;
      one.inputs = std::move(inputs);
      one.types = {{std::string(type_name), dtype}};
      one.colocated_with = node.name;
    };
    if (!names.has(node.name + "/read")) {
      add(names.take(node.name + "/read"), ReadVariable::name, {node.name}, ReadVariable::type_names[0]);
    }
    const std::string initial = names.take(node.name + "/initial_value");
    added.push_back(constant_def(initial, value->second->tensor));
    assigns.push_back(names.take(node.name + "/Assign"));
    add(assigns.back(), Assign::name, {node.name, initial}, "T");
  }
  for (NodeDef& node : added) def.graph.nodes.push_back(std::move(node));
  return assigns;
}

// ---- the ops of a graph ----

OpsOfGraph::OpsOfGraph(const GraphStore& graph)
    : ops_{&op_def<Placeholder>,  &op_def<Const>,  &op_def<Identity>,         &op_def<VariableOp>,
           &op_def<ReadVariable>, &op_def<Assign>, &op_def<LookupTableImport>} {
  const GraphStore::Nodes nodes = graph.nodes();
  for (const NodeId id : nodes.indices()) ops_.push_back(nodes[id].op);
  std::ranges::sort(ops_, {}, [](const OpDef* op) { return op->name; });
  const auto [begin, end] = std::ranges::unique(ops_);
  ops_.erase(begin, end);
}

}  // namespace dflow::detail
