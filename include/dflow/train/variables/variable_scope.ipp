#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <optional>
#include <utility>

namespace dflow {

std::string VariableScopeState::path_of(std::string_view name) const {
  return path.empty() ? std::string(name) : str_cat(path, "/", name);
}

std::string VariableScopeState::take_name(std::string_view name) {
  std::string free(name);
  for (int suffix = 1; !taken.insert(free).second; ++suffix) free = str_cat(name, "_", suffix);
  return free;
}

namespace detail {

std::shared_ptr<VariableScopeState> variable_scope_of(GraphStore& graph) {
  const auto current = graph.scope().extensions.find<VariableScopeState>();
  return current != nullptr ? current : std::make_shared<VariableScopeState>();
}

std::shared_ptr<VariableScopeState> open_variable_scope(const GraphStore& graph) {
  const auto current = graph.scope().extensions.find<VariableScopeState>();
  return current != nullptr && !current->is_outermost ? current : nullptr;
}

FoundVariable make_variable(GraphStore& graph, std::string_view prefix, std::string_view name, DType dtype,
                            const Shape& shape, const Initializer& initializer, const Regularizer& regularizer,
                            const At& at, std::string_view slice) {
  const auto reject = [&](std::string_view message) {
    throw_error(
        Status::invalid_argument(str_cat(name, ": ", message)).with_location(graph.scope().where.value_or(at.where)));
  };
  if (!initializer) reject("the initializer is empty");
  GraphStore::Scope outside = graph.scope();
  outside.control_inputs.clear();  // neither the first value nor the loss waits for what a step does
  outside.function = NodeId();     // nor are they part of a body in which the variable is asked for
  outside.foreign = nullptr;
  outside.name_prefix = prefix;
  const ScopeGuard without_control_inputs = graph.enter(std::move(outside));
  FoundVariable made;
  made.is_new = true;
  const auto first_value = [&] {
    const ScopeGuard scope = enter_name_scope(graph, str_cat(name, "_init"), at.where);
    AnyOutput initial;
    try {
      initial = initializer(graph, dtype, shape);
    } catch (const Error& error) {
      const std::source_location where = graph.scope().where.value_or(at.where);
      throw Error(error.status().with_prefix(str_cat(name, ": ")).with_location(where));
    }
    if (!initial.is_valid()) reject("the initializer gives an empty Output");
    if (initial.dtype() != dtype || !initial.shape().is_compatible_with(shape)) {
      reject(str_cat("the initializer gives ", dtype_name(initial.dtype()), " ", initial.shape().to_string(),
                     ", the variable is ", dtype_name(dtype), " ", shape.to_string()));
    }
    return initial.shape().is_fully_defined() ? initial : AnyOutput(build<EnsureShape>({initial}, {.shape = shape}));
  };
  made.variable = AnyVariable::make_unlisted(graph, dtype, shape, first_value, {.name = name, .slice = slice}, at);
  if (regularizer) {
    // In a cluster a scalar goes to the worker, not the variable.
    const ScopeGuard with = enter_colocation(graph, made.variable.handle().operation(), at.where);
    const ScopeGuard scope = enter_name_scope(graph, str_cat(name, "_regularizer"), at.where);
    const AnyOutput loss = regularizer(made.variable.read_edge());
    if (!loss.is_of(&graph) || loss.endpoint().index != 0 || !loss.shape().has_rank() || loss.shape().rank() != 0) {
      reject("the regularizer must give a scalar, the first output of a node of the graph");
    }
    made.regularization_loss = loss;
  }
  return made;
}

/// The variable of that name; an empty handle if there is no node of it. Errors: AlreadyExists for another node.
AnyVariable variable_named(GraphStore& graph, const std::string& path, std::source_location where) {
  const NodeId id = graph.find(path);
  if (!id.is_valid()) return {};
  if (graph.node(id).op->role == OpRole::variable) return AnyVariable::of(Operation(&graph, id));
  throw_error(
      Status::already_exists(str_cat("'", path, "' is the name of a ", graph.node(id).op->name, ", not of a variable"))
          .with_location(where));
}

FoundVariable find_or_make_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name,
                                    DType dtype, const Shape& shape, const GetVariableOptions& options, const At& at) {
  const std::source_location where = graph.scope().where.value_or(at.where);
  check_node_name(name, "get_variable", where);
  const std::string path = scope.path_of(name);
  const AnyVariable there = variable_named(graph, path, where);
  if (!there.handle().is_valid()) {
    if (scope.reuse == Reuse::always) {
      throw_error(Status::not_found(str_cat("there is no variable '", path,
                                            "', and its scope makes none: Reuse::never does, and Reuse::automatic"))
                      .with_location(where));
    }
    const std::string prefix = scope.path.empty() ? std::string() : scope.path + "/";
    const Regularizer& inherited = options.trainable ? scope.regularizer : options.regularizer;
    return make_variable(graph, prefix, name, dtype, shape,
                         options.initializer ? options.initializer : scope.initializer,
                         options.regularizer ? options.regularizer : inherited, at, options.slice);
  }
  const std::source_location made_at = there.handle().node().where;
  const std::string made = str_cat(", made at ", made_at.file_name(), ":", made_at.line());
  if (scope.reuse == Reuse::never) {
    throw_error(Status::already_exists(str_cat("variable '", path, "' exists already", made,
                                               ", and its scope shares none: Reuse::always does, and Reuse::automatic"))
                    .with_location(where));
  }
  if (there.dtype() != dtype || !there.shape().is_compatible_with(shape)) {
    throw_error(Status::invalid_argument(str_cat("variable '", path, "' is ", dtype_name(there.dtype()), " ",
                                                 there.shape().to_string(), made, ", and is asked for as ",
                                                 dtype_name(dtype), " ", shape.to_string()))
                    .with_location(where));
  }
  if (there.slice() != options.slice) {
    const auto said = [](std::string_view slice) {
      return slice.empty() ? std::string("no part of another") : str_cat("slice '", slice, "'");
    };
    throw_error(Status::invalid_argument(str_cat("variable '", path, "' is ", said(there.slice()), made,
                                                 ", and is asked for as ", said(options.slice)))
                    .with_location(where));
  }
  return {there, {}, false};
}

AnyVariable any_get_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, DType dtype,
                             const Shape& shape, const GetVariableOptions& options, const At& at) {
  const Composite place(graph, at.where);
  FoundVariable found = find_or_make_variable(graph, scope, name, dtype, shape, options, at);
  if (found.is_new) {
    const NodeId handle = found.variable.handle().node_id();
    graph.add_to_collection("variables", handle);
    if (options.trainable) graph.add_to_collection("trainable_variables", handle);
    if (found.regularization_loss.is_valid()) {
      graph.add_to_collection("regularization_losses", found.regularization_loss.node_id());
    }
  }
  return found.variable;
}

AnyVariable existing_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, const At& at) {
  const std::source_location where = graph.scope().where.value_or(at.where);
  const std::string path = scope.path_of(name);
  AnyVariable there = variable_named(graph, path, where);
  if (there.handle().is_valid()) return there;
  throw_error(Status::not_found(str_cat("there is no variable '", path, "'")).with_location(where));
}

}  // namespace detail

std::shared_ptr<VariableScopeState> VariableScope::nested(Graph& graph, std::string_view name) {
  const std::shared_ptr<VariableScopeState> around = detail::variable_scope_of(*graph.store());
  auto state = std::make_shared<VariableScopeState>(*around);
  state->is_outermost = false;
  if (name.empty()) return state;
  around->taken.emplace(name);
  state->path = around->path_of(name);
  return state;
}

ScopeGuard VariableScope::enter(GraphStore& graph, std::string_view name,
                                const std::shared_ptr<VariableScopeState>& state, const VariableScopeOptions& options,
                                std::source_location where) {
  if (options.compute != DType::invalid && options.compute != DType::float32 &&
      !detail::is_16_bit_float(options.compute)) {
    throw_error(
        Status::invalid_argument(str_cat("VariableScope: layers compute in float16, bfloat16 or float32, not in ",
                                         dtype_name(options.compute)))
            .with_location(where));
  }
  state->taken.clear();
  if (options.reuse != Reuse::inherit) state->reuse = options.reuse;
  if (options.initializer) state->initializer = options.initializer;
  if (options.regularizer) state->regularizer = options.regularizer;
  if (options.partitioner) state->partitioner = options.partitioner;
  if (options.compute != DType::invalid) state->compute = options.compute;
  std::optional<ScopeGuard> names;
  if (!name.empty()) names.emplace(enter_name_scope(graph, name, where));
  GraphStore::Scope scope = graph.scope();
  scope.extensions.set(state);
  return graph.enter(std::move(scope));
}

VariableScope::VariableScope(Graph& graph, std::string_view name, const VariableScopeOptions& options,
                             std::source_location where)
    : graph_(graph.store()), state_(nested(graph, name)), guard_(enter(*graph.store(), name, state_, options, where)) {}

VariableScope::VariableScope(Graph& graph, const VariableScopePath& again, const VariableScopeOptions& options,
                             std::source_location where)
    : graph_(graph.store()),
      state_(std::make_shared<VariableScopeState>(again.state_)),
      guard_(enter(*graph.store(), std::string_view(state_->path).substr(state_->path.rfind('/') + 1), state_, options,
                   where)) {}

}  // namespace dflow
