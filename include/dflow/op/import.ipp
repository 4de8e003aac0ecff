#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/op_args.hpp>
#include <dflow/op/import.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>

namespace dflow {

namespace detail {

/// An input of a NodeDef taken apart: "node", "node:1" or "^node".
struct EdgeName {
  std::string_view node;
  std::int32_t index = 0;
  bool is_control = false;

  /// Nothing if the text is no edge.
  static std::optional<EdgeName> parse(std::string_view text) {
    EdgeName edge;
    edge.is_control = !text.empty() && text.front() == '^';
    if (edge.is_control) text.remove_prefix(1);
    const std::size_t colon = edge.is_control ? std::string_view::npos : text.rfind(':');
    edge.node = text.substr(0, colon);
    if (edge.node.empty()) return std::nullopt;
    if (colon == std::string_view::npos) return edge;
    const std::string_view digits = text.substr(colon + 1);
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    for (const char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      edge.index = edge.index * 10 + (c - '0');
    }
    return edge;
  }

  friend bool operator==(const EdgeName&, const EdgeName&) = default;
};

struct EdgeNameHash {
  std::size_t operator()(const EdgeName& edge) const noexcept {
    return std::hash<std::string_view>{}(edge.node) * 31 + static_cast<std::size_t>(edge.index) * 2 + edge.is_control;
  }
};

/// Imports one GraphDef: names first, then the order, then node by node through `append_node`.
class GraphImporter {
 public:
  GraphImporter(GraphStore& graph, const GraphDef& def, const OpTable& table, const ImportOptions& options,
                std::source_location where)
      : graph_(graph), def_(def), table_(table), options_(options), where_(where), outer_(graph.scope()) {}

  std::vector<Operation> import() {
    check_size();
    index_input_map();
    index_names();
    index_edges();
    std::vector<Operation> operations;
    operations.reserve(def_.nodes.size());
    {
      GraphStore::Draft draft(graph_);
      built_front_ = NodeId(graph_.num_appended());
      enter_prefix();
      append_in_order();
      for (const NodeId id : built_) check_call(id);
      check_input_map_was_used();
      check_collections();
      for (const NodeId id : built_) operations.emplace_back(&graph_, id);
      draft.publish();
    }
    finish();
    return operations;
  }

 private:
  using Index = std::uint32_t;
  static constexpr NodeId not_built = NodeId();

  [[noreturn]] void fail(const NodeDef& node, const std::string& message) const {
    throw_error(at(node, Status::invalid_argument(message)));
  }

  [[noreturn]] void fail_graph(std::string message) const {
    throw_error(Status::invalid_argument(std::move(message)).with_location(where_));
  }

  /// `status` as an InvalidArgument of `node`.
  Status at(const NodeDef& node, const Status& status) const {
    std::string message(status.message());
    if (!node.file.empty()) message += str_cat(" (built at ", node.file, ":", node.line, ")");
    const Code code = status.code() == Code::resource_exhausted ? status.code() : Code::invalid_argument;
    return Status(code, std::move(message)).with_node(node.op, node.name).with_location(where_);
  }

  void check_size() const {
    if (def_.version == 0 || def_.version > GraphDef::current_version) {
      fail_graph(str_cat("the graph has version ", def_.version, "; this library reads versions 1 to ",
                         GraphDef::current_version));
    }
    const std::size_t room = NodeId::max_position - graph_.size();
    const std::size_t most = std::min(options_.max_nodes, room);
    if (def_.nodes.size() > most) {
      fail_graph(str_cat("the graph has ", def_.nodes.size(), " nodes, more than the limit of ", most));
    }
  }

  void index_input_map() {
    for (const auto& [key, edge] : options_.input_map) {
      const std::optional<EdgeName> name = EdgeName::parse(key);
      if (!name) fail_graph(str_cat("input_map: '", key, "' is no edge"));
      if (!edge.is_valid()) fail_graph(str_cat("input_map: '", key, "' is mapped to an empty Output"));
      if (!edge.is_of(&graph_)) fail_graph(str_cat("input_map: '", key, "' is mapped to another graph"));
      if (!mapped_.try_emplace(*name, Mapped{edge}).second) {
        fail_graph(str_cat("input_map: '", key, "' is mapped twice"));
      }
    }
  }

  void index_names() {
    index_of_.reserve(def_.nodes.size());
    for (Index i = 0; i < def_.nodes.size(); ++i) {
      const NodeDef& node = def_.nodes[i];
      try {
        (options_.is_part_of_step ? &check_step_node_name : &check_node_name)(node.name, node.op, where_);
      } catch (const Error& error) {
        throw_error(at(node, error.status()));
      }
      if (!index_of_.emplace(node.name, i).second) fail(node, str_cat("two nodes are named '", node.name, "'"));
      if (is_in_graph(node.name)) fail(node, str_cat("the graph has a node '", node.name, "' already"));
    }
  }

  /// Whether the graph already has this node, for a def that goes on from its nodes.
  bool is_in_graph(std::string_view name) const { return options_.goes_on && graph_.has_name(name); }

  /// The node of this name that has been built, or was there.
  NodeId built(std::string_view name) const {
    const auto found = index_of_.find(name);
    return found != index_of_.end() ? built_[found->second] : graph_.find(name);
  }

  Index index_of(const NodeDef& node, std::string_view name, std::string_view role) const {
    const auto found = index_of_.find(name);
    if (found == index_of_.end()) fail(node, str_cat(role, " '", name, "' is not in the graph"));
    return found->second;
  }

  /// Calls `visit(predecessor)` for each node of the def that `node` needs to be built first.
  template <class Visit>
  void for_each_predecessor(const NodeDef& node, Visit&& visit) {
    for (const std::string& input : node.inputs) {
      const std::optional<EdgeName> edge = EdgeName::parse(input);
      if (!edge) fail(node, str_cat("'", input, "' is no edge: 'node', 'node:1' or '^node' is"));
      if (const auto mapped = mapped_.find(*edge); mapped != mapped_.end()) {
        mapped->second.is_used = true;
      } else if (!is_in_graph(edge->node)) {
        visit(index_of(node, edge->node, edge->is_control ? "control input" : "input"));
      }
    }
    if (!node.function.empty() && !is_in_graph(node.function)) visit(index_of(node, node.function, "function"));
    if (node.colocated_with.empty() || is_in_graph(node.colocated_with)) return;
    visit(index_of(node, node.colocated_with, "the node to colocate with,"));
  }

  /// Successors of all nodes in one list, and how many predecessors each node waits for.
  void index_edges() {
    const std::size_t count = def_.nodes.size();
    pending_.assign(count, 0);
    first_successor_.assign(count + 1, 0);
    for (Index i = 0; i < count; ++i) {
      for_each_predecessor(def_.nodes[i], [&](Index from) {
        ++pending_[i];
        ++first_successor_[from + 1];
      });
    }
    for (std::size_t i = 0; i < count; ++i) first_successor_[i + 1] += first_successor_[i];
    successors_.resize(first_successor_[count]);
    std::vector<std::size_t> next(first_successor_.begin(), first_successor_.end() - 1);
    for (Index i = 0; i < count; ++i) {
      for_each_predecessor(def_.nodes[i], [&](Index from) { successors_[next[from]++] = i; });
    }
  }

  void enter_prefix() {
    if (options_.prefix.empty()) return;
    check_node_name(options_.prefix, "import", where_);
    prefix_ = graph_.unique_name(options_.prefix);
    outer_.name_prefix = prefix_ + "/";
  }

  /// Kahn's algorithm (1962); of the nodes that are ready, the first one in the def goes first, so a def in topological
  /// order keeps it.
  void append_in_order() {
    std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
    for (Index i = 0; i < pending_.size(); ++i) {
      if (pending_[i] == 0) ready.push(i);
    }
    built_.assign(def_.nodes.size(), not_built);
    std::size_t num_built = 0;
    for (; !ready.empty(); ++num_built) {
      const Index i = ready.top();
      ready.pop();
      append(i);
      for (std::size_t s = first_successor_[i]; s < first_successor_[i + 1]; ++s) {
        if (--pending_[successors_[s]] == 0) ready.push(successors_[s]);
      }
    }
    if (num_built < def_.nodes.size()) fail_cycle();
  }

  /// Walks from any node left over back along predecessors left over. The walk meets a node twice, and that node is
  /// on a cycle.
  [[noreturn]] void fail_cycle() {
    std::vector<bool> is_seen(def_.nodes.size());
    Index i = 0;
    while (built_[i] != not_built) ++i;
    while (!is_seen[i]) {
      is_seen[i] = true;
      Index before = i;
      for_each_predecessor(def_.nodes[i], [&](Index from) {
        if (built_[from] == not_built) before = from;
      });
      i = before;
    }
    fail(def_.nodes[i], str_cat("node '", def_.nodes[i].name, "' is on a cycle"));
  }

  void append(Index i) {
    const NodeDef& node = def_.nodes[i];
    const OpDef* op = table_.find(node.op);
    if (op == nullptr) fail(node, str_cat("the op table has no op '", node.op, "'"));
    try {
      NodeRequest request;
      request.op = op;
      request.types = types_of(node, *op);
      request.attrs = attrs_of(node, *op);
      request.name = node.name;
      request.where = where_;
      request.is_part_of_step = options_.is_part_of_step;
      check_list_outputs(*op, request.attrs.get());
      GraphStore::Scope scope = scope_of(node);
      std::vector<AnyOutput> inputs;
      for (const std::string& input : node.inputs) add_input(*EdgeName::parse(input), inputs, scope);
      request.inputs = inputs;
      const ScopeGuard guard = graph_.enter(std::move(scope));
      built_[i] = append_node(graph_, request);
    } catch (const Error& error) {
      throw_error(at(node, error.status()));
    }
  }

  TypeArgs types_of(const NodeDef& node, const OpDef& op) const {
    TypeArgs types;
    for (const auto& [name, dtype] : node.types) {
      const auto param = std::find_if(op.type_params.begin(), op.type_params.end(),
                                      [&name = name](const TypeParamDef& candidate) { return candidate.name == name; });
      if (param == op.type_params.end())
        throw_error(Status::invalid_argument(str_cat(op.name, " has no type parameter '", name, "'")));
      if (!dtype_from_number(static_cast<std::uint64_t>(dtype))) {
        throw_error(Status::invalid_argument(str_cat("type parameter '", name, "' has no element type's number")));
      }
      DType& value = types.values[param - op.type_params.begin()];
      if (value != DType::invalid)
        throw_error(Status::invalid_argument(str_cat("type parameter '", name, "' is given twice")));
      value = dtype;
    }
    types.size = static_cast<std::uint8_t>(op.type_params.size());
    return types;
  }

  std::shared_ptr<const void> attrs_of(const NodeDef& node, const OpDef& op) const {
    if (op.attr_fields.empty() && node.attrs.empty()) return nullptr;
    std::shared_ptr<void> attrs = op.make_attrs();
    std::vector<bool> is_set(op.attr_fields.size());
    for (const auto& [name, value] : node.attrs) {
      const auto field = std::find_if(op.attr_fields.begin(), op.attr_fields.end(),
                                      [&name = name](const AttrField& candidate) { return candidate.name == name; });
      if (field == op.attr_fields.end())
        throw_error(Status::invalid_argument(str_cat(op.name, " has no attribute '", name, "'")));
      const auto position = static_cast<std::size_t>(field - op.attr_fields.begin());
      if (is_set[position]) throw_error(Status::invalid_argument(str_cat("attribute '", name, "' is given twice")));
      is_set[position] = true;
      check_dtypes(name, value);
      field->set(attrs.get(), with_new_names(op.role, value));
    }
    return attrs;
  }

  /// Replaces names of the def in an attribute. The def's functions have the names that their first nodes have now,
  /// and so have nodes of bodies whose values are kept. Frames belong to the prefix: a def that is imported twice has
  /// two.
  AttrValue with_new_names(OpRole role, AttrValue value) const {
    const auto rename = [&](std::string& name) {
      if (index_of_.contains(name)) name = outer_.name_prefix + name;
    };
    if (auto* text = std::get_if<std::string>(&value)) {
      if (role == OpRole::kept_value) rename(*text);
      if (role == OpRole::enter && !prefix_.empty()) *text = str_cat(prefix_, "/", *text);
    }
    if (!calls_functions(role)) return value;
    if (auto* function = std::get_if<FunctionName>(&value)) rename(function->name);
    if (auto* list = std::get_if<std::vector<std::string>>(&value)) std::for_each(list->begin(), list->end(), rename);
    if (auto* edges = std::get_if<std::string>(&value)) *edges = with_new_edges(*edges);
    return value;
  }
  /// Of "node:0;other:1".
  std::string with_new_edges(std::string_view edges) const {
    std::string renamed;
    while (!edges.empty()) {
      const std::string_view one = edges.substr(0, edges.find(';'));
      edges.remove_prefix(std::min(edges.size(), one.size() + 1));
      if (!renamed.empty()) renamed += ';';
      if (index_of_.contains(std::string(one.substr(0, one.rfind(':'))))) renamed += outer_.name_prefix;
      renamed += one;
    }
    return renamed;
  }

  static void check_dtypes(std::string_view name, const AttrValue& value) {
    const auto check = [name](DType dtype) {
      if (dtype == DType::invalid || dtype_from_number(static_cast<std::uint64_t>(dtype))) return;
      throw_error(Status::invalid_argument(str_cat("attribute '", name, "' has no element type's number")));
    };
    if (const auto* one = std::get_if<DType>(&value)) check(*one);
    if (const auto* list = std::get_if<std::vector<DType>>(&value)) {
      for (const DType dtype : *list) check(dtype);
    }
  }

  void check_list_outputs(const OpDef& op, const void* attrs) {
    const ListAttrs lists(op, attrs);
    for (const ArgDef& arg : op.outputs) {
      if (!arg.is_list()) continue;
      list_outputs_ += std::min(static_cast<std::size_t>(lists.output_length(arg)), options_.max_list_outputs + 1);
      if (list_outputs_ > options_.max_list_outputs) {
        throw_error(Status::invalid_argument(
            str_cat("the graph has more than ", options_.max_list_outputs, " outputs in lists")));
      }
    }
  }

  GraphStore::Scope scope_of(const NodeDef& node) const {
    GraphStore::Scope scope = outer_;
    if (!node.function.empty()) {
      scope.function = built(node.function);
      scope.control_inputs.clear();  // the call waits
    }
    if (!node.colocated_with.empty()) {
      scope.colocate(built(node.colocated_with));
      scope.device = node.device.empty() ? std::string() : DeviceName::parse(node.device).to_string();
    } else if (!node.device.empty()) {
      const DeviceName device = DeviceName::parse(node.device);
      scope.device =
          (outer_.device.empty() ? device : DeviceName::parse(outer_.device).merged_with(device)).to_string();
    }
    return scope;
  }

  void add_input(const EdgeName& edge, std::vector<AnyOutput>& inputs, GraphStore::Scope& scope) const {
    const auto mapped = mapped_.find(edge);
    const bool is_mapped = mapped != mapped_.end();
    const NodeId source = is_mapped ? mapped->second.edge.node_id() : built(edge.node);
    if (edge.is_control) return scope.control_inputs.push_back(source);
    const Endpoint endpoint = is_mapped ? mapped->second.edge.endpoint() : Endpoint{source, edge.index};
    const std::size_t num_outputs = graph_.node(source).outputs.size();
    if (endpoint.index < 0 || static_cast<std::size_t>(endpoint.index) >= num_outputs) {
      throw_error(Status::invalid_argument(str_cat("input '", edge.node, ":", endpoint.index,
                                                   "' does not exist: that node has ", num_outputs, " outputs")));
    }
    inputs.emplace_back(&graph_, endpoint);
  }

  /// A call may name a function that the graph has and the def has not; checks that the function fits the call.
  /// Errors: NotFound if there is no such function.
  void check_call(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op->role != OpRole::call) return;
    const std::string name = called_functions(node).front();
    const NodeId begin = graph_.find_appended(name);
    if (begin.is_valid() && begin >= built_front_) return;  // the def's: the step looks at it
    const auto reject = [&](Status status) {
      throw_error(std::move(status).with_node(node.op->name, node.name).with_location(where_));
    };
    if (!begin.is_valid() || graph_.node(begin).op->role != OpRole::function) {
      reject(Status::not_found(str_cat("it calls function '", name, "', which neither the def nor the graph has")));
    }
    const std::optional<GraphStore::Function> function = graph_.function(begin);
    if (!function || !function->results.is_valid()) {
      reject(Status::invalid_argument(str_cat("the body of function '", name, "' is not finished")));
    }
    const auto dtype = [&](Endpoint edge) { return graph_.node(edge.node).outputs[as_size(edge.index)].dtype; };
    const std::vector<Endpoint>& results = graph_.node(function->results).inputs;
    bool fits = node.inputs.size() >= function->arguments.size() && node.outputs.size() == results.size();
    for (std::size_t i = 0; fits && i < function->arguments.size(); ++i) {
      fits = dtype(node.inputs[i]) == dtype({function->arguments[i], 0});
    }
    for (std::size_t i = 0; fits && i < results.size(); ++i) fits = node.outputs[i].dtype == dtype(results[i]);
    if (!fits) {
      reject(Status::invalid_argument(str_cat("function '", name, "' of the graph has ", function->arguments.size(),
                                              " arguments and ", results.size(),
                                              " results, of element types that the call does not give and take")));
    }
  }
  static std::size_t as_size(std::int32_t index) noexcept { return static_cast<std::size_t>(index); }

  void check_input_map_was_used() const {
    for (const auto& [key, mapped] : mapped_) {
      if (!mapped.is_used) {
        fail_graph(str_cat("input_map: no node has the input '", key.is_control ? "^" : "", key.node,
                           key.index == 0 ? std::string() : str_cat(":", key.index), "'"));
      }
    }
  }

  void check_collections() const {
    for (const auto& [name, members] : def_.collections) {
      for (const std::string& member : members) {
        if (index_of_.find(member) == index_of_.end()) {
          fail_graph(str_cat("collection '", name, "' has the node '", member, "', which is not in the graph"));
        }
      }
    }
  }

  /// The steps of an import that cannot fail because of the def.
  void finish() {
    if (!prefix_.empty()) graph_.reserve_scope_name(prefix_);
    for (const NodeId id : built_) graph_.reserve_scopes_of(graph_.node(id).name);
    for (const auto& [name, members] : def_.collections) {
      for (const std::string& member : members) {
        graph_.add_to_collection(name, built_[index_of_.find(member)->second]);
      }
    }
    // Random ops built from now on must not draw a seed that one of the imported ops already has.
    graph_.count_random_ops(def_.nodes.size());
  }

  struct Mapped {
    AnyOutput edge;
    bool is_used = false;
  };

  GraphStore& graph_;
  const GraphDef& def_;
  const OpTable& table_;
  const ImportOptions& options_;
  std::source_location where_;
  GraphStore::Scope outer_;
  std::string prefix_;
  std::unordered_map<EdgeName, Mapped, EdgeNameHash> mapped_;
  std::unordered_map<std::string_view, Index> index_of_;
  std::vector<Index> pending_;
  std::vector<std::size_t> first_successor_;
  std::vector<Index> successors_;
  std::vector<NodeId> built_;
  NodeId built_front_;  ///< the first
  std::size_t list_outputs_ = 0;
};

}  // namespace detail

std::vector<Operation> import_graph_into(Graph& graph, const GraphDef& def, const OpTable& table,
                                         const ImportOptions& options, std::source_location where) {
  return detail::GraphImporter(*graph.store(), def, table, options, where).import();
}

Graph import_graph(const GraphDef& def, const OpTable& table, const ImportOptions& options,
                   std::source_location where) {
  Graph graph({.seed = def.seed});
  static_cast<void>(import_graph_into(graph, def, table, options, where));
  return graph;
}

}  // namespace dflow
