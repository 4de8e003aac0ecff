#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/master_copy.hpp>
#include <dflow/train/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

namespace dflow::train {

Hyperparameter::Hyperparameter(double value, std::source_location where) : value_(value) {
  if (!std::isfinite(value)) {
    throw_error(Status::invalid_argument(str_cat("Hyperparameter: the number is ", value)).with_location(where));
  }
}

Hyperparameter::Hyperparameter(const AnyOutput& edge, std::source_location where) : edge_(edge) {
  if (!edge.is_valid()) {
    throw_error(Status::invalid_argument("Hyperparameter: the edge is an empty Output").with_location(where));
  }
}

namespace detail {
inline AnyTensor scalar(DType dtype, double value) {
  return visit_dtype<FloatTypes>(dtype,
                                 [&]<class T>() -> AnyTensor { return Tensor<T>::full({}, static_cast<T>(value)); });
}
}  // namespace detail

AnyOutput Hyperparameter::edge(GraphStore& graph, DType dtype) const {
  if (edge_.is_valid()) return dflow::detail::cast_to(edge_, dtype);
  return dflow::detail::any_constant(graph, detail::scalar(dtype, value_), {});
}

AnyVariable make_slot(const AnyVariable& variable, std::string_view name, DType dtype, double initial) {
  GraphStore& graph = *variable.handle().graph();
  if (!variable.shape().is_fully_defined()) {
    const Node& node = variable.handle().node();
    throw_error(
        Status::invalid_argument(str_cat("variable '", variable.name(), "' needs a known shape to be trained, has ",
                                         variable.shape().to_string()))
            .with_node(node.op->name, node.name)
            .with_location(node.where));
  }
  GraphStore::Scope scope = graph.scope();
  scope.name_prefix = variable.name() + "/";
  scope.colocate(variable.handle().node_id());
  scope.control_inputs.clear();
  scope.function = NodeId();  // the copy is no part of a body in which the variable is trained
  scope.foreign = nullptr;
  const ScopeGuard beside_it = graph.enter(scope);
  const std::string unique = graph.unique_name(name).substr(scope.name_prefix.size());
  const AnyTensor value = detail::scalar(dtype == DType::invalid ? variable.dtype() : dtype, initial);
  const AnyOutput filled = dflow::detail::any_fill(graph, IndexList(variable.shape().to_shape()), value, {});
  return AnyVariable::make(graph, filled, {.name = unique, .trainable = false, .slice = variable.slice()});
}

namespace detail {

std::vector<GradientAndVariable> in_this_body(std::span<const GradientAndVariable> gradients) {
  std::vector<GradientAndVariable> inside(gradients.begin(), gradients.end());
  for (GradientAndVariable& each : inside) {
    if (!each.gradient.exists()) continue;
    AnyOutput& values = values_of(each.gradient);
    values = build<Identity>({values});
  }
  return inside;
}

}  // namespace detail

std::vector<GradientAndVariable> Optimizer::compute_gradients(const AnyOutput& loss, std::vector<AnyVariable> variables,
                                                              const ComputeGradientsOptions& options,
                                                              std::source_location where) const {
  if (!loss.is_valid()) {
    throw_error(Status::invalid_argument(str_cat(name(), ": the loss is an empty Output")).with_location(where));
  }
  if (!is_floating(loss.dtype())) {
    throw_error(Status::invalid_argument(str_cat(name(), ": the loss is ", dtype_name(loss.dtype()),
                                                 ", and only edges of float types have gradients"))
                    .with_location(where));
  }
  return differentiate(loss, std::move(variables), options, where);
}

Operation Optimizer::apply_gradients(std::span<const GradientAndVariable> gradients,
                                     const std::optional<Variable<std::int64_t>>& global_step, const At& at) const {
  return update(gradients, global_step, at);
}

std::vector<GradientAndVariable> Optimizer::differentiate(const AnyOutput& loss, std::vector<AnyVariable> variables,
                                                          const ComputeGradientsOptions& options,
                                                          std::source_location where) const {
  if (variables.empty()) variables = dflow::detail::variables_in(*loss.graph(), "trainable_variables");
  if (variables.empty()) {
    throw_error(
        Status::invalid_argument(str_cat(name(), ": the graph has no trainable variables")).with_location(where));
  }
  std::vector<AnyOutput> reads;
  reads.reserve(variables.size());
  for (const AnyVariable& variable : variables) reads.push_back(variable.read_edge());
  std::vector<Gradient> gradients = dflow::gradients(std::span(&loss, 1), std::span<const AnyOutput>(reads),
                                                     {.aggregation = options.aggregation,
                                                      .gate_gradients = options.gate_gradients == GateGradients::op,
                                                      .where = where});
  if (options.gate_gradients == GateGradients::graph) {
    const Composite place(*loss.graph(), where);
    gradients = dflow::gate(gradients);
  }
  std::vector<GradientAndVariable> result;
  for (std::size_t i = 0; i < variables.size(); ++i) result.push_back({std::move(gradients[i]), variables[i]});
  return result;
}

GraphStore& Optimizer::graph_of(std::span<const GradientAndVariable> gradients, std::source_location where) const {
  const auto trained = std::find_if(gradients.begin(), gradients.end(),
                                    [](const GradientAndVariable& each) { return each.gradient.exists(); });
  if (trained != gradients.end()) return *trained->variable.handle().graph();
  throw_error(
      Status::invalid_argument(str_cat(name(), ": the loss depends on none of the variables")).with_location(where));
}

Operation Optimizer::update(std::span<const GradientAndVariable> gradients,
                            const std::optional<Variable<std::int64_t>>& global_step, const At& at) const {
  GraphStore& graph = graph_of(gradients, at.where);
  const Composite place(graph, at.where);
  std::optional<ScopeGuard> scope(enter_name_scope(graph, name()));
  const std::unique_ptr<Updates> shared = start(graph);
  const auto apply_one = [](Updates& build_on, const AnyVariable& variable, const Gradient& gradient) {
    return gradient.slices ? build_on.apply_sparse(variable, *gradient.slices)
                           : build_on.apply_dense(variable, gradient.dense);
  };
  std::vector<Operation> updates;
  std::unordered_map<NodeId, std::vector<Operation>> of_copies;  // by handle, the last update, if there is one
  for (const GradientAndVariable& each : gradients) {
    if (!each.gradient.exists()) continue;
    const ScopeGuard with = enter_colocation(graph, each.variable.handle().operation());
    if (!dflow::detail::is_16_bit_float(each.variable.dtype())) {
      updates.push_back(apply_one(*shared, each.variable, each.gradient));
      continue;
    }
    Gradient wide = each.gradient;
    detail::values_of(wide) = dflow::detail::widened(detail::values_of(wide));
    // If a variable comes again, its update starts from the result of its last update.
    std::vector<Operation>& before = of_copies[each.variable.handle().node_id()];
    const ScopeGuard after = enter_control_dependencies(graph, before);
    const AnyVariable copy = make_slot(each.variable, "master", DType::float32);
    updates.push_back(detail::MasterCopy(each.variable, copy).apply([&](const AnyVariable& master) {
      return apply_one(*shared, master, wide);
    }));
    before.assign(1, updates.back());
  }
  const std::vector<Operation> last = shared->finish(updates);
  updates.insert(updates.end(), last.begin(), last.end());
  if (global_step) {
    const ScopeGuard after = enter_control_dependencies(graph, updates);
    const AnyOutput one = dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, 1), {});
    updates.push_back(global_step->any_variable().assign_add(one));
  }
  if (!at.name.empty()) scope.reset();
  return group(updates, at);
}

Operation Optimizer::minimize(const AnyOutput& loss, const MinimizeOptions& options, const At& at) const {
  const std::vector<GradientAndVariable> gradients =
      detail::changed(compute_gradients(loss, options.variables, options.differentiation(), at.where), options);
  std::vector<Operation> all = detail::update_operations_of(loss, options);
  if (all.empty()) return apply_gradients(gradients, options.global_step, at);
  all.push_back(apply_gradients(gradients, options.global_step, {.where = at.where}));
  return group(all, at);
}

namespace detail {

/// The nodes that lie before given nodes, by the positions of their ids.
class NodesBefore {
 public:
  explicit NodesBefore(const GraphStore& graph) : graph_(graph), is_before_(graph.num_appended()) {}

  bool contains(NodeId id) const { return is_before_[id.position()]; }
  /// Adds `from` and all nodes before it; stops at nodes for which `stops` is true. Visits each new node; returns
  /// false as soon as a visit does.
  template <class Stops, class Visit>
  bool add(NodeId from, const Stops& stops, const Visit& visit) {
    std::vector<NodeId> pending;
    const auto reach = [&](NodeId id) {
      if (is_before_[id.position()] || stops(id)) return;
      is_before_[id.position()] = true;
      pending.push_back(id);
    };
    reach(from);
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      const Node& node = graph_.node(id);
      if (!visit(id, node)) return false;
      for (const Endpoint input : node.inputs) reach(input.node);
      for (const NodeId control : node.control_inputs) reach(control);
    }
    return true;
  }

 private:
  const GraphStore& graph_;
  std::vector<bool> is_before_;
};

/// True if the node is a variable or reads or changes one.
bool is_of_variable(const GraphStore& graph, const Node& node) {
  if (node.op->role == OpRole::variable) return true;
  return !node.inputs.empty() && graph.node(node.inputs[0].node).op->role == OpRole::variable;
}

std::vector<Operation> update_operations_of(const AnyOutput& loss, const MinimizeOptions& options) {
  return options.run_update_ops ? update_operations(loss) : std::vector<Operation>();
}

}  // namespace detail

std::vector<Operation> update_operations(const AnyOutput& loss) {
  if (!loss.is_valid()) throw_error(Status::invalid_argument("update_operations: the loss is an empty Output"));
  GraphStore& graph = *loss.graph();
  const std::vector<NodeId> all = graph.collection("update_ops");
  std::vector<Operation> needed;
  if (all.empty()) return needed;
  std::vector<bool> is_trained(graph.num_appended());
  for (const NodeId id : graph.collection("trainable_variables")) is_trained[id.position()] = true;
  detail::NodesBefore of_loss(graph);
  of_loss.add(
      loss.node_id(), [](NodeId) { return false; }, [](NodeId, const Node&) { return true; });
  for (const NodeId id : all) {
    const bool is_ours = detail::NodesBefore(graph).add(
        id, [&](NodeId before) { return of_loss.contains(before); },
        [&](NodeId before, const Node& node) {
          if (node.function.is_valid() || node.op->role == OpRole::placeholder) return false;
          if (is_trained[before.position()] || passes_on(node.op->role)) return false;
          return !node.op->is_stateful || node.op->role == OpRole::no_op || detail::is_of_variable(graph, node);
        });
    if (is_ours) needed.emplace_back(&graph, id);
  }
  return needed;
}

}  // namespace dflow::train
