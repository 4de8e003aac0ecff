#pragma once

#include <dflow/base/spread_bits.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/text/nearest_name.hpp>
#include <dflow/graph/graph_store.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow {

// ---- handles ----

void detail::throw_graph_is_gone() {
  throw_error(
      Status::invalid_argument("a handle belongs to a graph that is gone: the graph was destroyed, or another "
                               "graph was assigned to it"));
}

GraphReference::GraphReference(const GraphStore* graph) noexcept
    : anchor_(graph == nullptr ? nullptr : graph->anchor()), number_(graph == nullptr ? 0 : graph->number()) {}

bool GraphReference::is_of(const GraphStore* graph) const noexcept {
  return graph != nullptr && number_ == graph->number();
}

std::vector<std::string> called_functions(const Node& node) {
  std::vector<std::string> names;
  for (const AttrField& field : node.op->attr_fields) {
    if (field.kind == AttrKind::function) names.push_back(std::get<FunctionName>(attr_of(node, field)).name);
    if (field.kind == AttrKind::string_list) names = std::get<std::vector<std::string>>(attr_of(node, field));
  }
  return names;
}

std::size_t argument_number(const Node& node) {
  return static_cast<std::size_t>(std::get<std::int64_t>(attr_of(node, node.op->attr_fields[0])));
}

namespace detail {

const Node& node_of_handle(const GraphStore* graph, NodeId id, std::string_view handle) {
  if (graph == nullptr) [[unlikely]] {
    throw_error(Status::invalid_argument(str_cat("an empty ", handle, " belongs to no graph")));
  }
  return graph->node(id);
}

const OutputInfo& info_of(const AnyOutput& edge) {
  const Node& node = edge.node();
  const auto index = static_cast<std::size_t>(edge.endpoint().index);
  if (index >= node.outputs.size()) [[unlikely]] {
    throw_error(Status::invalid_argument(str_cat("node '", node.name, "' has no output ", edge.endpoint().index))
                    .with_node(node.op->name, node.name)
                    .with_location(node.where));
  }
  return node.outputs[index];
}

}  // namespace detail

const Node& Operation::node() const { return detail::node_of_handle(graph(), node_, "Operation"); }
const std::string& Operation::name() const { return node().name; }
const Node& AnyOutput::node() const { return detail::node_of_handle(graph(), endpoint_.node, "Output"); }
DType AnyOutput::dtype() const { return detail::info_of(*this).dtype; }
const PartialShape& AnyOutput::shape() const { return detail::info_of(*this).shape; }
std::string AnyOutput::name() const {
  return endpoint_.index == 0 ? node().name : str_cat(node().name, ":", endpoint_.index);
}

void detail::require_dtype(const AnyOutput& output, DType dtype) {
  if (!output.is_valid()) throw_error(Status::invalid_argument("an empty output has no element type"));
  if (output.dtype() == dtype) return;
  throw_error(Status::invalid_argument(
                  str_cat("'", output.name(), "' carries ", dtype_name(output.dtype()), ", not ", dtype_name(dtype)))
                  .with_node(output.node().op->name, output.node().name)
                  .with_location(output.node().where));
}

AttrValue attr_of(const Node& node, const AttrField& field) {
  if (node.attrs != nullptr) return field.get(node.attrs.get());
  return field.get(node.op->make_attrs().get());
}

bool same_attrs(const Node& a, const Node& b) {
  if (a.attrs == b.attrs) return true;
  return std::all_of(a.op->attr_fields.begin(), a.op->attr_fields.end(),
                     [&](const AttrField& field) { return attr_equal(attr_of(a, field), attr_of(b, field)); });
}

// ---- random ops ----

std::uint64_t next_op_seed(GraphStore& graph, std::uint64_t requested) {
  if (requested != 0) return requested;
  const std::uint64_t ordinal = graph.count_random_ops(1);
  const std::uint64_t seed = graph.options().seed;
  if (seed == 0) return 0;
  // Neighbouring (seed, ordinal) pairs, over the key space.
  const std::uint64_t spread = spread_bits(seed + ordinal * spread_step);
  return spread == 0 ? 1 : spread;
}

// ---- Graph ----

Graph::Graph(GraphOptions options) : store_(std::make_shared<GraphStore>(options)) {}
Graph::Graph(const Graph& other) : store_(std::make_shared<GraphStore>(*other.store())) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph& other) {
  if (this != &other) store_ = std::make_shared<GraphStore>(*other.store());
  return *this;
}
Graph::~Graph() = default;

GraphStore* Graph::store() const {
  if (store_ == nullptr) [[unlikely]]
    throw_error(Status::failed_precondition("the graph was moved to another Graph"));
  return store_.get();
}

std::size_t Graph::num_nodes() const { return store()->size(); }
const Node& Graph::node(NodeId id) const {
  if (id.is_valid() && id.position() < num_nodes()) return store()->node(id);
  throw_error(Status::not_found(str_cat("the graph has no node number ", id.value(), ", but ", num_nodes(), " nodes")));
}
std::uint64_t Graph::version() const { return store()->version(); }
std::uint64_t Graph::seed() const { return store()->options().seed; }

Operation Graph::find(std::string_view name) const {
  const NodeId id = store()->find(name);
  return id.is_valid() ? Operation(store(), id) : Operation();
}

AnyOutput Graph::output(std::string_view name) const {
  const std::size_t colon = name.rfind(':');
  std::int32_t index = 0;
  std::string_view node_name = name;
  if (colon != std::string_view::npos) {
    node_name = name.substr(0, colon);
    if (colon + 1 == name.size()) throw_error(Status::invalid_argument(str_cat("'", name, "' is not an edge name")));
    for (const char c : name.substr(colon + 1)) {
      if (c < '0' || c > '9' || index > 1'000'000) {
        throw_error(Status::invalid_argument(str_cat("'", name, "' is not an edge name")));
      }
      index = index * 10 + (c - '0');
    }
  }
  const Operation operation = find(node_name);
  if (!operation.is_valid()) {
    NearestName near(node_name);
    const GraphStore::Nodes nodes = store()->nodes();
    for (const NodeId id : nodes.indices()) near.consider(nodes[id].name);
    const std::string_view nearest = near.nearest();
    throw_error(Status::not_found(str_cat("the graph has no node named '", node_name, "'",
                                          nearest.empty() ? "" : str_cat("; did you mean '", nearest, "'?"))));
  }
  if (static_cast<std::size_t>(index) >= operation.node().outputs.size()) {
    throw_error(Status::not_found(str_cat("node '", node_name, "' has no output ", index)));
  }
  return {store(), Endpoint{operation.node_id(), index}};
}

ScopeGuard Graph::device(std::string_view name, std::source_location where) {
  return enter_device(*store(), name, where);
}

ScopeGuard Graph::device(DeviceFunction choose) {
  GraphStore::Scope scope = store()->scope();
  if (choose == nullptr) throw_error(Status::invalid_argument("device: the function is empty"));
  scope.device_rule = std::make_shared<const GraphStore::DeviceRule>(
      GraphStore::DeviceRule{std::move(choose), std::move(scope.device), std::move(scope.device_rule)});
  scope.device.clear();
  return store()->enter(std::move(scope));
}

ScopeGuard Graph::name_scope(std::string_view name, std::source_location where) {
  return enter_name_scope(*store(), name, where);
}

ScopeGuard Graph::control_dependencies(std::span<const Operation> operations, std::source_location where) {
  return enter_control_dependencies(*store(), operations, where);
}

ScopeGuard Graph::control_dependencies(std::initializer_list<Operation> operations, std::source_location where) {
  return control_dependencies(std::span<const Operation>(operations.begin(), operations.size()), where);
}

ScopeGuard Graph::colocate_with(Operation operation, std::source_location where) {
  return enter_colocation(*store(), operation, where);
}

ScopeGuard Graph::colocate_with(const AnyOutput& output, std::source_location where) {
  return colocate_with(output.operation(), where);
}

void Graph::add_to_collection(std::string_view collection, Operation operation, std::source_location where) {
  detail::require_node(*store(), operation, "add_to_collection", where);
  store()->add_to_collection(collection, operation.node_id());
}

std::vector<Operation> Graph::collection(std::string_view name) const {
  std::vector<Operation> operations;
  for (const NodeId id : store()->collection(name)) operations.emplace_back(store(), id);
  return operations;
}

}  // namespace dflow
