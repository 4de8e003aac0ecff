#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/state/variable.hpp>

#include <utility>
#include <vector>

namespace dflow {

// ---- shapes ----

namespace detail {

/// Fails if the value's element type is known to differ from the variable's.
void require_variable_dtype(InferContext& context, DType wanted, int handle = 0) {
  const DType held = context.variable_dtype(handle);
  if (held == DType::invalid || held == wanted) return;
  context.fail(str_cat("the variable holds ", dtype_name(held), ", not ", dtype_name(wanted)));
}

void infer_assign_update(InferContext& context) {
  require_variable_dtype(context, context.type_arg(0));
  static_cast<void>(context.merge(context.input(0), context.input(1)));
}

void infer_row_update(InferContext& context) {
  require_variable_dtype(context, context.type_arg(0));
  const PartialShape variable = context.with_rank_at_least(0, 1);
  if (!variable.has_rank() || context.input(2) == PartialShape{}) return;
  const PartialShape wanted = context.input(1).concatenated(variable.subshape(1, variable.rank()));
  static_cast<void>(context.merge(wanted, context.input(2)));
}

}  // namespace detail

void VariableOp::infer(InferContext& context) { context.set_output(0, context.attrs<VariableOp>().shape); }
void ReadVariable::infer(InferContext& context) {
  detail::require_variable_dtype(context, context.type_arg(0));
  context.set_output(0, context.input(0));
}
void Assign::infer(InferContext& context) {
  detail::require_variable_dtype(context, context.type_arg(0));
  if (context.attrs<Assign>().validate_shape) static_cast<void>(context.merge(context.input(0), context.input(1)));
}
void AssignAdd::infer(InferContext& context) { detail::infer_assign_update(context); }
void AssignSub::infer(InferContext& context) { detail::infer_assign_update(context); }
void StridedSliceAssign::infer(InferContext& context) {
  detail::require_variable_dtype(context, context.type_arg(0));
  const auto box = detail::inferred_box(context, context.input(0), 1, context.attrs<StridedSliceAssign>());
  if (box && context.input(4) != PartialShape{}) static_cast<void>(context.merge(box->shape, context.input(4)));
}
void IsVariableInitialized::infer(InferContext& context) { context.set_output(0, Shape{}); }

// ---- AnyVariable ----

AnyVariable AnyVariable::make(GraphStore& graph, const AnyOutput& initial_value, const VariableOptions& options,
                              const At& at) {
  const AnyVariable variable = make_unlisted(graph, initial_value, options, at);
  const NodeId handle = variable.handle_.node_id();
  graph.add_to_collection(options.local ? "local_variables" : "variables", handle);
  if (options.trainable && !options.local) graph.add_to_collection("trainable_variables", handle);
  return variable;
}

namespace detail {

void require_initial_value(const GraphStore& graph, const AnyOutput& value, const VariableOptions& options,
                           const At& at) {
  if (value.is_of(&graph)) return;
  throw_error(Status::invalid_argument("the initial value of a variable is an empty Output or belongs to another graph")
                  .with_node(VariableOp::name, options.name)
                  .with_location(at.where));
}

}  // namespace detail

AnyVariable AnyVariable::make_unlisted(GraphStore& graph, const AnyOutput& initial_value,
                                       const VariableOptions& options, const At& at) {
  detail::require_initial_value(graph, initial_value, options, at);
  return make_unlisted(
      graph, initial_value.dtype(), initial_value.shape(), [&] { return initial_value; }, options, at);
}

namespace detail {

/// The scope of the nodes of a variable's initial value: as it is, but in the task into which a device function has put
/// the handle. Another part of the function's answer is for the handle alone.
GraphStore::Scope beside_task_of(const Node& handle, GraphStore::Scope scope) {
  if (scope.device_rule == nullptr) return scope;
  const DeviceName device = DeviceName::parse(handle.device);
  if (!device.job) return scope;
  const DeviceName task{.job = device.job, .replica = device.replica, .task = device.task, .type = {}, .id = {}};
  scope.device = task.merged_with(DeviceName::parse(scope.device)).to_string();
  scope.device_rule = nullptr;
  return scope;
}

}  // namespace detail

AnyVariable AnyVariable::make_unlisted(GraphStore& graph, DType dtype, const PartialShape& shape,
                                       FunctionRef<AnyOutput()> initial_value, const VariableOptions& options,
                                       const At& at) {
  if (options.container.starts_with('_')) {
    throw_error(Status::invalid_argument(
                    str_cat("container '", options.container, "': a name that begins with '_' is the library's"))
                    .with_node(VariableOp::name, options.name)
                    .with_location(at.where));
  }
  GraphStore::Scope scope = graph.scope();
  scope.control_inputs.clear();
  const ScopeGuard without_control_inputs = graph.enter(scope);
  AnyVariable variable;
  variable.handle_ = build<VariableOp>(graph, {},
                                       {.shape = shape,
                                        .container = std::string(options.container),
                                        .shared_name = std::string(options.shared_name),
                                        .slice = std::string(options.slice)},
                                       {.name = options.name, .where = at.where}, detail::one_type(dtype));
  const NodeId handle = variable.handle_.node_id();
  const AnyOutput initial = [&] {
    const ScopeGuard there = graph.enter(detail::beside_task_of(graph.node(handle), scope));
    return initial_value();
  }();
  detail::require_initial_value(graph, initial, options, at);
  scope.name_prefix = graph.node(handle).name + "/";
  scope.colocate(handle);
  const ScopeGuard beside_it = graph.enter(scope);
  variable.read_ =
      build<ReadVariable>({variable.handle_}, {}, {.name = "read", .where = at.where}, detail::one_type(dtype));
  build<Assign>({variable.handle_, initial}, {}, {.name = "Assign", .where = at.where});
  return variable;
}

namespace detail {

Operation find_beside(const Operation& handle, std::string_view suffix) {
  if (!handle.is_valid()) return {};
  const NodeId found = handle.graph()->find(str_cat(handle.name(), "/", suffix));
  return found.is_valid() ? Operation(handle.graph(), found) : Operation();
}

/// The node "w/read" of variable "w", else the first node that reads w and waits for nothing.
Operation find_read(const Operation& handle) {
  const auto reads = [&](const Node& node) {
    return node.op->role == OpRole::read_variable && node.inputs[0].node == handle.node_id();
  };
  const Operation read = find_beside(handle, "read");
  if (read.is_valid() && reads(read.node())) return read;
  const GraphStore& graph = *handle.graph();
  for (std::size_t i = handle.node_id().position() + 1; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (reads(node) && node.control_inputs.empty()) return Operation(handle.graph(), NodeId(i));
  }
  return {};
}

}  // namespace detail

std::string AnyVariable::whole_name() const {
  const std::string& all = name();
  if (slice().empty()) return all;
  constexpr std::string_view mark = "part_";
  for (std::size_t end = all.size(); end != std::string::npos && end > 0;) {
    const std::size_t slash = all.rfind('/', end - 1);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string_view component = std::string_view(all).substr(begin, end - begin);
    const bool is_part = component.starts_with(mark) && component.size() > mark.size() &&
                         component.find_first_not_of("0123456789", mark.size()) == std::string_view::npos;
    if (is_part && begin > 0) return all.substr(0, slash) + all.substr(end);
    end = slash;
  }
  return all;
}

AnyVariable AnyVariable::of(const Operation& handle) {
  if (!handle.is_valid() || handle.node().op->role != OpRole::variable) {
    throw_error(Status::invalid_argument(
        str_cat("'", handle.is_valid() ? handle.name() : "", "' is not the handle of a variable")));
  }
  const Operation read = detail::find_read(handle);
  if (!read.is_valid()) {
    throw_error(Status::invalid_argument(
                    str_cat("no node reads variable '", handle.name(), "', as '", handle.name(), "/read' does"))
                    .with_node(handle.node().op->name, handle.name()));
  }
  AnyVariable variable;
  variable.handle_ = AnyOutput(handle.graph(), {handle.node_id(), 0});
  variable.read_ = AnyOutput(handle.graph(), {read.node_id(), 0});
  return variable;
}

Operation AnyVariable::initializer() const {
  const Operation assign = detail::find_beside(handle_.operation(), "Assign");
  if (assign.is_valid()) return assign;
  throw_error(Status::invalid_argument(
      str_cat("variable '", name(), "' has no initial value: there is no node '", name(), "/Assign'")));
}

AnyOutput AnyVariable::read(const At& at) const {
  return detail::build_on<ReadVariable>({handle_}, {}, at, read_.is_valid() ? detail::one_type(dtype()) : TypeArgs{});
}
AnyOutput AnyVariable::initialized_value(const At& at) const {
  const Operation initialized = initializer();
  GraphStore& graph = *initialized.graph();
  const ScopeGuard without_control_inputs = detail::enter_without_control_inputs(graph);
  const ScopeGuard after = enter_control_dependencies(graph, {&initialized, 1}, at.where);
  return read(at);
}
Operation AnyVariable::assign(const AnyOutput& value, const At& at, bool validate_shape) const {
  return detail::build_on<Assign>({handle_, value}, {.validate_shape = validate_shape}, at);
}
Operation AnyVariable::assign_add(const AnyOutput& delta, const At& at) const {
  return detail::build_on<AssignAdd>({handle_, delta}, {}, at);
}
Operation AnyVariable::assign_sub(const AnyOutput& delta, const At& at) const {
  return detail::build_on<AssignSub>({handle_, delta}, {}, at);
}
Operation AnyVariable::scatter_update(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterUpdate>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_add(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterAdd>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_sub(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterSub>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_mul(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterMul>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_div(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterDiv>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_min(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterMin>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::scatter_max(const AnyOutput& indices, const AnyOutput& updates, const At& at) const {
  return detail::build_on<ScatterMax>({handle_, indices, updates}, {}, at);
}
Operation AnyVariable::assign_slice(std::span<const SliceIndex> indices, const AnyOutput& value, const At& at) const {
  const ScopeGuard beside = detail::enter_beside(handle_, StridedSliceAssign::name, at);
  const detail::StridedSliceInputs slice =
      detail::strided_slice_inputs(*handle_.graph(), indices, StridedSliceAssign::name, at);
  return build<StridedSliceAssign>({handle_, slice.begin, slice.end, slice.strides, value}, slice.masks, at);
}
AnyOutput AnyVariable::is_initialized(const At& at) const {
  return detail::build_on<IsVariableInitialized>({handle_}, {}, at);
}

namespace detail {

std::vector<AnyVariable> variables_in(GraphStore& graph, std::string_view collection, std::size_t begin) {
  const std::vector<NodeId> ids = graph.collection(collection);
  std::vector<AnyVariable> variables;
  for (std::size_t i = begin; i < ids.size(); ++i) variables.push_back(AnyVariable::of(Operation(&graph, ids[i])));
  return variables;
}

}  // namespace detail

std::vector<AnyVariable> global_variables(const Graph& graph) {
  return detail::variables_in(*graph.store(), "variables");
}
std::vector<AnyVariable> trainable_variables(const Graph& graph) {
  return detail::variables_in(*graph.store(), "trainable_variables");
}

std::vector<AnyVariable> local_variables(const Graph& graph) {
  return detail::variables_in(*graph.store(), "local_variables");
}

namespace detail {
Operation initialize_all(Graph& graph, std::string_view collection, const At& at) {
  std::vector<Operation> initializers;
  for (const AnyVariable& variable : variables_in(*graph.store(), collection)) {
    initializers.push_back(variable.initializer());
  }
  return no_op_after(*graph.store(), initializers, at);
}
}  // namespace detail

Operation initialize_variables(Graph& graph, const At& at) { return detail::initialize_all(graph, "variables", at); }
Operation initialize_local_variables(Graph& graph, const At& at) {
  return detail::initialize_all(graph, "local_variables", at);
}

}  // namespace dflow
