#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/infer_context.hpp>

#include <array>
#include <mutex>
#include <utility>

namespace dflow {

namespace detail {

/// Values of a node's inputs as far as the graph tells: constants, and shapes of known edges.
class GraphInputValues final : public InputValues {
 public:
  GraphInputValues(const GraphStore& graph, std::span<const Endpoint> inputs)
      : graph_(graph), inputs_(inputs), constants_(inputs.size()) {}

  const AnyTensor* value(int i) const override {
    AnyTensor& constant = constants_[static_cast<std::size_t>(i)];
    if (constant.is_initialized()) return &constant;
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    if (source.op->name != "Const") return nullptr;
    constant = std::get<AnyTensor>(attr_of(source, source.op->attr_fields[0]));
    return &constant;
  }

  std::optional<PartialShape> value_as_shape(int i) const override {
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    if (source.op->name == "Shape") {
      const Endpoint of = source.inputs[0];
      const PartialShape& shape = graph_.node(of.node).outputs[static_cast<std::size_t>(of.index)].shape;
      if (shape.has_rank()) return shape;
    }
    return std::nullopt;
  }

  DType variable_dtype(int i) const override {
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    return source.op->name == "Variable" ? source.types[0] : DType::invalid;
  }

 private:
  const GraphStore& graph_;
  std::span<const Endpoint> inputs_;
  mutable std::vector<AnyTensor> constants_;
};

DFLOW_INLINE Status at_node(const Status& status, const NodeRequest& request) {
  return status.with_node(request.op->name, request.name).with_location(request.where);
}

[[noreturn]] DFLOW_INLINE void reject(const NodeRequest& request, std::string message) {
  throw Error(at_node(invalid_argument(std::move(message)), request));
}

/// The argument that input `i` of a node with `num_inputs` inputs belongs to.
DFLOW_INLINE const ArgDef& arg_of_input(const OpDef& op, std::size_t i, std::size_t num_inputs) {
  const std::size_t list_size = num_inputs - op.num_fixed_inputs();
  std::size_t position = 0;
  for (const ArgDef& arg : op.inputs) {
    position += arg.is_list() ? list_size : 1;
    if (i < position) return arg;
  }
  return op.inputs.back();
}

/// Fills the type parameters that the inputs decide and checks every edge against the signature.
DFLOW_INLINE TypeArgs resolve_types(const NodeRequest& request) {
  const OpDef& op = *request.op;
  const std::size_t fixed = op.num_fixed_inputs();
  const std::size_t count = request.inputs.size();
  if (count < fixed || (count > fixed && !op.has_list_input())) {
    reject(request, str_cat(op.name, " takes ", op.has_list_input() ? "at least " : "", fixed, " inputs, got ", count));
  }
  TypeArgs types = request.types;
  types.size = static_cast<std::uint8_t>(op.type_params.size());
  for (std::size_t i = 0; i < count; ++i) {
    const ArgDef& arg = arg_of_input(op, i, count);
    const DType got = request.inputs[i].dtype();
    if (arg.kind == ArgDef::Kind::any_list) continue;
    if (arg.kind == ArgDef::Kind::fixed) {
      if (got != arg.dtype) {
        reject(request, str_cat(op.name, ": input ", i, " must be ", dflow::name(arg.dtype), ", got ", dflow::name(got)));
      }
      continue;
    }
    DType& want = types.values[arg.param];
    if (want == DType::invalid) want = got;
    if (want != got) {
      reject(request, str_cat(op.name, ": input ", i, " is ", dflow::name(got), " where ", op.type_params[arg.param].name,
                              " = ", dflow::name(want)));
    }
  }
  for (std::size_t p = 0; p < op.type_params.size(); ++p) {
    if (types.values[p] == DType::invalid) {
      reject(request, str_cat(op.name, ": type parameter ", op.type_params[p].name, " is not decided by its inputs"));
    }
    if (!op.type_params[p].allows(types.values[p])) {
      reject(request, str_cat(op.name, " is not defined for ", op.type_params[p].name, " = ", dflow::name(types.values[p])));
    }
  }
  return types;
}

DFLOW_INLINE std::vector<OutputInfo> declare_outputs(const NodeRequest& request, const TypeArgs& types) {
  std::vector<OutputInfo> outputs;
  const OpDef& op = *request.op;
  outputs.reserve(op.outputs.size());
  for (const ArgDef& arg : op.outputs) {
    std::int64_t count = 1;
    if (arg.is_list()) {
      count = op.output_list_size(request.attrs ? request.attrs.get() : op.make_attrs().get());
      if (count < 0 || count > (1 << 20)) reject(request, str_cat(op.name, ": cannot have ", count, " outputs"));
    }
    const DType dtype = arg.kind == ArgDef::Kind::fixed ? arg.dtype : types[arg.param];
    outputs.insert(outputs.end(), static_cast<std::size_t>(count), OutputInfo{dtype, PartialShape::unknown()});
  }
  return outputs;
}

}  // namespace detail

// ---- names ----

DFLOW_INLINE void check_node_name(std::string_view name, std::string_view op, std::source_location where) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool legal = !name.empty() && name.size() <= 4096;
  for (std::size_t i = 0; legal && i < name.size(); ++i) {
    const char c = name[i];
    legal = is_letter(c) || is_digit(c) || c == '.' || c == '_' || (i > 0 && (c == '/' || c == '-' || c == '>'));
  }
  if (legal) return;
  throw Error(invalid_argument(str_cat("'", name, "' is not a legal node name: letters, digits and _./-> only, not empty"))
                  .with_node(op, name)
                  .with_location(where));
}

DFLOW_INLINE std::string GraphStore::unique_name(std::string_view requested) {
  std::string name = scopes.back().name_prefix;
  name += requested;
  if (node_of_name.find(name) == node_of_name.end() && next_suffix.find(name) == next_suffix.end()) return name;
  int& suffix = next_suffix[name];
  std::string candidate;
  do {
    candidate = str_cat(name, "_", ++suffix);
  } while (node_of_name.find(candidate) != node_of_name.end());
  return candidate;
}

// ---- appending ----

DFLOW_INLINE NodeId append_node(GraphStore& graph, const NodeRequest& request) {
  for (const AnyOutput& input : request.inputs) {
    if (input.is_valid() && input.graph() == &graph) continue;
    detail::reject(request, input.is_valid() ? str_cat(request.op->name, ": an input belongs to another graph")
                                             : str_cat(request.op->name, ": an input is an empty Output"));
  }
  Node node;
  node.op = request.op;
  node.where = request.where;
  node.types = detail::resolve_types(request);
  node.attrs = request.attrs;
  node.inputs.reserve(request.inputs.size());
  for (const AnyOutput& input : request.inputs) node.inputs.push_back(input.endpoint());
  node.outputs = detail::declare_outputs(request, node.types);
  if (!request.name.empty()) {
    check_node_name(request.name, request.op->name, request.where);
    node.name = graph.scopes.back().name_prefix + std::string(request.name);
    check_node_name(node.name, request.op->name, request.where);
    if (graph.node_of_name.find(node.name) != graph.node_of_name.end()) {
      detail::reject(request, str_cat("a node named '", node.name, "' exists already"));
    }
  }
  try {
    infer_shapes(graph, node);
  } catch (const Error& error) {
    throw Error(detail::at_node(error.status(), request));
  }

  const GraphStore::Scope& scope = graph.scopes.back();
  node.control_inputs = scope.control_inputs;
  node.device = scope.device;
  node.colocated_with = scope.colocated_with;
  if (node.name.empty()) node.name = graph.unique_name(request.op->name);

  const std::unique_lock lock(graph.mutex);
  const auto id = static_cast<NodeId>(graph.nodes.size());
  graph.node_of_name.emplace(node.name, id);
  graph.nodes.push_back(std::move(node));
  return id;
}

DFLOW_INLINE void infer_shapes(const GraphStore& graph, Node& node) {
  if (node.op->infer == nullptr) return;
  constexpr std::size_t few = 8;
  std::array<PartialShape, few> few_inputs, few_outputs;
  std::array<DType, few> few_dtypes;
  std::vector<PartialShape> many_inputs, many_outputs;
  std::vector<DType> many_dtypes;
  const auto room = [](auto& few_items, auto& many_items, std::size_t count) {
    if (count > few) many_items.resize(count);
    return std::span(count > few ? many_items.data() : few_items.data(), count);
  };
  const auto inputs = room(few_inputs, many_inputs, node.inputs.size());
  const auto dtypes = room(few_dtypes, many_dtypes, node.inputs.size());
  const auto outputs = room(few_outputs, many_outputs, node.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint source = node.inputs[i];
    const OutputInfo& info = graph.node(source.node).outputs[static_cast<std::size_t>(source.index)];
    inputs[i] = info.shape;
    dtypes[i] = info.dtype;
  }
  for (PartialShape& shape : outputs) shape = PartialShape::unknown();
  const detail::GraphInputValues values(graph, node.inputs);
  InferContext context(node, inputs, dtypes, values, outputs);
  node.op->infer(context);
  for (std::size_t i = 0; i < outputs.size(); ++i) node.outputs[i].shape = std::move(outputs[i]);
}

DFLOW_INLINE std::uint64_t next_op_seed(GraphStore& graph, std::uint64_t requested) {
  if (requested != 0) return requested;
  const std::uint64_t ordinal = ++graph.random_ops;
  if (graph.options.seed == 0) return 0;
  // SplitMix64 (Steele, Lea, Flood 2014) spreads neighbouring (seed, ordinal) pairs over the key space.
  std::uint64_t z = graph.options.seed + ordinal * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

// ---- handles ----

DFLOW_INLINE const Node& Operation::node() const { return graph_->node(node_); }
DFLOW_INLINE const std::string& Operation::name() const { return node().name; }
DFLOW_INLINE const Node& AnyOutput::node() const { return graph_->node(endpoint_.node); }
DFLOW_INLINE DType AnyOutput::dtype() const { return node().outputs[static_cast<std::size_t>(endpoint_.index)].dtype; }
DFLOW_INLINE const PartialShape& AnyOutput::shape() const {
  return node().outputs[static_cast<std::size_t>(endpoint_.index)].shape;
}
DFLOW_INLINE std::string AnyOutput::name() const {
  return endpoint_.index == 0 ? node().name : str_cat(node().name, ":", endpoint_.index);
}

DFLOW_INLINE void detail::require_dtype(const AnyOutput& output, DType dtype) {
  if (!output.is_valid()) throw Error(invalid_argument("an empty output has no element type"));
  if (output.dtype() == dtype) return;
  throw Error(invalid_argument(str_cat("'", output.name(), "' carries ", dflow::name(output.dtype()), ", not ", dflow::name(dtype)))
                  .with_node(output.node().op->name, output.node().name)
                  .with_location(output.node().where));
}

DFLOW_INLINE AttrValue attr_of(const Node& node, const AttrField& field) {
  if (node.attrs != nullptr) return field.get(node.attrs.get());
  return field.get(node.op->make_attrs().get());
}

// ---- Graph ----

DFLOW_INLINE GraphStore::GraphStore(const GraphStore& other)
    : nodes(other.nodes),
      node_of_name(other.node_of_name),
      next_suffix(other.next_suffix),
      collections(other.collections),
      options(other.options),
      random_ops(other.random_ops) {}

DFLOW_INLINE Graph::Graph(GraphOptions options) : store_(std::make_unique<GraphStore>(options)) {}
DFLOW_INLINE Graph::Graph(const Graph& other) : store_(std::make_unique<GraphStore>(*other.store_)) {}
DFLOW_INLINE Graph::Graph(Graph&&) noexcept = default;
DFLOW_INLINE Graph& Graph::operator=(Graph&&) noexcept = default;
DFLOW_INLINE Graph& Graph::operator=(const Graph& other) {
  if (this != &other) store_ = std::make_unique<GraphStore>(*other.store_);
  return *this;
}
DFLOW_INLINE Graph::~Graph() = default;

DFLOW_INLINE std::size_t Graph::num_nodes() const noexcept {
  const std::shared_lock lock(store_->mutex);
  return store_->nodes.size();
}
DFLOW_INLINE const Node& Graph::node(NodeId id) const {
  const std::shared_lock lock(store_->mutex);
  return store_->node(id);
}

DFLOW_INLINE Operation Graph::find(std::string_view name) const {
  const std::shared_lock lock(store_->mutex);
  const auto found = store_->node_of_name.find(name);
  return found == store_->node_of_name.end() ? Operation() : Operation(store_.get(), found->second);
}

DFLOW_INLINE AnyOutput Graph::output(std::string_view name) const {
  const std::size_t colon = name.rfind(':');
  std::int32_t index = 0;
  std::string_view node_name = name;
  if (colon != std::string_view::npos) {
    node_name = name.substr(0, colon);
    if (colon + 1 == name.size()) throw Error(invalid_argument(str_cat("'", name, "' is not an edge name")));
    for (const char c : name.substr(colon + 1)) {
      if (c < '0' || c > '9' || index > 1'000'000) throw Error(invalid_argument(str_cat("'", name, "' is not an edge name")));
      index = index * 10 + (c - '0');
    }
  }
  const Operation operation = find(node_name);
  if (!operation.is_valid()) throw Error(not_found(str_cat("the graph has no node named '", node_name, "'")));
  if (static_cast<std::size_t>(index) >= operation.node().outputs.size()) {
    throw Error(not_found(str_cat("node '", node_name, "' has no output ", index)));
  }
  return {store_.get(), Endpoint{operation.node_id(), index}};
}

DFLOW_INLINE ScopeGuard::~ScopeGuard() {
  if (graph_ != nullptr) graph_->scopes.pop_back();
}

DFLOW_INLINE ScopeGuard Graph::device(std::string_view name) {
  GraphStore::Scope scope = store_->scopes.back();
  const DeviceName inner = DeviceName::parse(name);
  scope.device = scope.device.empty() ? inner.to_string() : DeviceName::parse(scope.device).merged_with(inner).to_string();
  store_->scopes.push_back(std::move(scope));
  return ScopeGuard(store_.get());
}

DFLOW_INLINE ScopeGuard enter_scope(GraphStore& graph, GraphStore::Scope scope) {
  graph.scopes.push_back(std::move(scope));
  return ScopeGuard(&graph);
}

DFLOW_INLINE ScopeGuard enter_name_scope(GraphStore& graph, std::string_view name) {
  check_node_name(name, "name_scope", std::source_location::current());
  GraphStore::Scope scope = graph.scopes.back();
  const std::string unique = graph.unique_name(name);
  graph.next_suffix.try_emplace(unique, 0);
  scope.name_prefix = unique + "/";
  return enter_scope(graph, std::move(scope));
}

DFLOW_INLINE ScopeGuard enter_colocation(GraphStore& graph, NodeId node) {
  GraphStore::Scope scope = graph.scopes.back();
  scope.colocated_with = node;
  return enter_scope(graph, std::move(scope));
}

DFLOW_INLINE ScopeGuard enter_control_dependencies(GraphStore& graph, std::span<const Operation> operations) {
  GraphStore::Scope scope = graph.scopes.back();
  for (const Operation& operation : operations) {
    if (operation.graph() != &graph) {
      throw Error(invalid_argument("control_dependencies: an operation is empty or belongs to another graph"));
    }
    scope.control_inputs.push_back(operation.node_id());
  }
  return enter_scope(graph, std::move(scope));
}

DFLOW_INLINE ScopeGuard Graph::name_scope(std::string_view name) { return enter_name_scope(*store_, name); }

DFLOW_INLINE ScopeGuard Graph::control_dependencies(std::span<const Operation> operations) {
  return enter_control_dependencies(*store_, operations);
}

DFLOW_INLINE ScopeGuard Graph::control_dependencies(std::initializer_list<Operation> operations) {
  return control_dependencies(std::span<const Operation>(operations.begin(), operations.size()));
}

DFLOW_INLINE ScopeGuard Graph::colocate_with(Operation operation) {
  if (operation.graph() != store_.get()) {
    throw Error(invalid_argument("colocate_with: the operation is empty or belongs to another graph"));
  }
  return enter_colocation(*store_, operation.node_id());
}

DFLOW_INLINE ScopeGuard Graph::colocate_with(const AnyOutput& output) { return colocate_with(output.operation()); }

DFLOW_INLINE void Graph::add_to_collection(std::string_view collection, Operation operation) {
  if (operation.graph() != store_.get()) {
    throw Error(invalid_argument("add_to_collection: the operation is empty or belongs to another graph"));
  }
  add_to_graph_collection(*store_, collection, operation.node_id());
}

DFLOW_INLINE void add_to_graph_collection(GraphStore& graph, std::string_view collection, NodeId node) {
  const std::unique_lock lock(graph.mutex);
  const auto found = graph.collections.find(collection);
  if (found != graph.collections.end()) return found->second.push_back(node);
  graph.collections.emplace(std::string(collection), std::vector<NodeId>{node});
}

DFLOW_INLINE std::vector<Operation> Graph::collection(std::string_view name) const {
  const std::shared_lock lock(store_->mutex);
  std::vector<Operation> operations;
  const auto found = store_->collections.find(name);
  if (found == store_->collections.end()) return operations;
  for (const NodeId id : found->second) operations.emplace_back(store_.get(), id);
  return operations;
}

DFLOW_INLINE std::uint64_t Graph::seed() const noexcept { return store_->options.seed; }

}  // namespace dflow
