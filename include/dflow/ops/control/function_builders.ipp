#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/ops/control/function_body.hpp>
#include <dflow/ops/control/function_builders.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::detail {

/// The node that calls them, inside the scopes that the caller is in.
template <class O>
BuiltNode build_call(GraphStore& graph, std::vector<AnyOutput> inputs, const CaptureList& captures,
                     typename O::Attrs attrs, const At& at) {
  for (const Endpoint edge : captures.all()) inputs.emplace_back(&graph, edge);
  return build<O>(graph, inputs, std::move(attrs), at);
}

/// An empty list of shapes means that all shapes are unknown.
inline void complete_shapes(std::vector<PartialShape>& shapes, std::size_t n, std::string_view of,
                            std::string_view function, std::source_location where) {
  if (shapes.empty()) shapes.resize(n, PartialShape::unknown());
  if (shapes.size() == n) return;
  throw_error(Status::invalid_argument(
                  str_cat("function '", function, "': ", shapes.size(), " shapes are declared for ", n, " ", of))
                  .with_location(where));
}

FunctionHandle define_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                               std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                               FunctionBegin::Attrs attrs) {
  complete_shapes(shapes, types.size(), "arguments", name, at.where);
  const std::optional<std::source_location> around = graph.scope().where;
  const ScopeGuard place = enter_place(graph, at.where);
  GraphStore::Draft draft(graph);
  FunctionBody body(graph, name, at.where, around, attrs);
  FunctionHandle handle{&graph, body.begin(), body.name(), std::move(types), std::move(shapes), {}, {}};
  std::vector<AnyOutput> arguments;
  arguments.reserve(handle.argument_types.size());
  for (std::size_t i = 0; i < handle.argument_types.size(); ++i) {
    arguments.push_back(body.add_argument(handle.argument_types[i], handle.argument_shapes[i]));
  }
  const BodyResults results = build_it(arguments);
  body.finish(results);
  handle.captures = body.captures();
  for (const AnyOutput& edge : results.edges) handle.result_types.push_back(edge.dtype());
  draft.publish();
  return handle;
}

/// Whether `declared` stands for every shape that `shape` stands for.
inline bool is_within(const PartialShape& shape, const PartialShape& declared) {
  bool fits = !declared.has_rank();
  if (!fits && shape.has_rank() && shape.rank() == declared.rank()) {
    fits = true;
    for (int d = 0; d < declared.rank(); ++d) fits &= declared.dim(d) == dynamic || declared.dim(d) == shape.dim(d);
  }
  return fits;
}

/// Errors: InvalidArgument unless the results are as declared.
inline void require_declared(const BodyResults& results, const FunctionHandle& function, std::source_location where) {
  const auto reject = [&](const auto&... what) {
    throw_error(Status::invalid_argument(str_cat("function '", function.name, "' ", what...)).with_location(where));
  };
  if (results.edges.size() != function.result_types.size()) {
    reject("gives ", results.edges.size(), " results, not ", function.result_types.size());
  }
  for (std::size_t i = 0; i < results.edges.size(); ++i) {
    const AnyOutput& edge = results.edges[i];
    if (!edge.is_valid()) continue;  // an error of the node that ends the body
    const DType wanted = function.result_types[i];
    if (edge.dtype() != wanted) {
      reject("gives as result ", i, " ", dtype_name(edge.dtype()), ", not ", dtype_name(wanted));
    }
    if (!is_within(edge.shape(), function.result_shapes[i])) {
      reject("gives as result ", i, " the shape ", edge.shape().to_string(), ", not ",
             function.result_shapes[i].to_string());
    }
  }
}

FunctionHandle define_recursion(GraphStore& graph, std::string_view name, Recursion known, BuildRecursion build_it,
                                const At& at) {
  complete_shapes(known.argument_shapes, known.argument_types.size(), "arguments", name, at.where);
  complete_shapes(known.result_shapes, known.result_types.size(), "results", name, at.where);
  const std::optional<std::source_location> around = graph.scope().where;
  const ScopeGuard place = enter_place(graph, at.where);
  constexpr int max_attempts = 3;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    GraphStore::Draft draft(graph);
    FunctionBody body(graph, name, at.where, around);
    FunctionHandle self{&graph,
                        body.begin(),
                        body.name(),
                        known.argument_types,
                        known.argument_shapes,
                        known.captures,
                        known.result_types,
                        known.result_shapes,
                        true};
    std::vector<AnyOutput> arguments;
    for (std::size_t i = 0; i < known.argument_types.size(); ++i) {
      arguments.push_back(body.add_argument(known.argument_types[i], known.argument_shapes[i]));
    }
    const BodyResults results = build_it(self, arguments);
    require_declared(results, self, at.where);
    body.finish(results);
    bool is_complete = true;
    for (const Endpoint capture : body.captures()) {
      if (std::find(known.captures.begin(), known.captures.end(), capture) != known.captures.end()) continue;
      known.captures.push_back(capture);
      is_complete = false;
    }
    if (!is_complete) continue;
    draft.publish();
    self.is_open = false;
    return self;
  }
  throw_error(
      Status::invalid_argument(str_cat("function '", name, "' reads something else each time its body is built"))
          .with_location(at.where));
}

FunctionHandle register_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                                 std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                                 FunctionBegin::Attrs attrs) {
  check_node_name(name, "register_function", graph.scope().where.value_or(at.where));
  GraphStore::Scope root = graph.scope();
  root.name_prefix.clear();
  root.function = NodeId();
  root.foreign = nullptr;
  const ScopeGuard scope = graph.enter(std::move(root));
  GraphStore::Draft draft(graph);
  FunctionHandle handle = define_function(graph, name, std::move(types), std::move(shapes), build_it, at, attrs);
  if (handle.name != name) {
    throw_error(Status::already_exists(str_cat("the graph has a node, or a name scope, '", name, "' already"))
                    .with_location(graph.scope().where.value_or(at.where)));
  }
  graph.add_to_collection("functions", handle.begin);
  draft.publish();
  return handle;
}

/// "(float, int32) -> (float)".
std::string signature_text(std::span<const DType> arguments, std::span<const DType> results) {
  const auto list = [](std::span<const DType> types) {
    std::string text = "(";
    for (std::size_t i = 0; i < types.size(); ++i) {
      text += i == 0 ? "" : ", ";
      text += types[i] == DType::invalid ? "any" : dtype_name(types[i]);
    }
    return text + ")";
  };
  return str_cat(list(arguments), " -> ", list(results));
}

FunctionHandle find_function(GraphStore& graph, std::string_view name, std::span<const DType> argument_types,
                             std::span<const DType> result_types, const At& at) {
  const std::source_location where = graph.scope().where.value_or(at.where);
  const NodeId begin = graph.find(name);
  if (!begin.is_valid() || graph.node(begin).op->role != OpRole::function) {
    throw_error(Status::not_found(str_cat("the graph has no function '", name, "'",
                                          begin.is_valid() ? str_cat(": that is a ", graph.node(begin).op->name) : ""))
                    .with_location(where));
  }
  FunctionHandle handle{&graph, begin, std::string(name), {}, {}, {}, {}};
  GraphStore::Function function;
  try {
    function = require_function(graph, begin, handle.name);
  } catch (const Error& error) {
    throw_error(Status(error.status()).with_location(where));
  }
  for (const NodeId argument : function.arguments) {
    const OutputInfo& info = graph.node(argument).outputs.front();
    handle.argument_types.push_back(info.dtype);
    handle.argument_shapes.push_back(info.shape);
  }
  for (const Endpoint result : graph.node(function.results).inputs) {
    handle.result_types.push_back(graph.node(result.node).outputs[static_cast<std::size_t>(result.index)].dtype);
  }
  const auto fit = [](std::span<const DType> asked, const std::vector<DType>& has) {
    return std::equal(asked.begin(), asked.end(), has.begin(), has.end(),
                      [](DType a, DType b) { return a == b || a == DType::invalid; });
  };
  if (!fit(argument_types, handle.argument_types) || !fit(result_types, handle.result_types)) {
    throw_error(Status::invalid_argument(
                    str_cat("function '", name, "' is ", signature_text(handle.argument_types, handle.result_types),
                            ", and is asked for as ", signature_text(argument_types, result_types)))
                    .with_location(where));
  }
  handle.captures = captures_of(graph, begin, function.results);
  return handle;
}

BuiltNode FunctionHandle::call(std::span<const AnyOutput> arguments, const At& at) const {
  if (graph == nullptr || arguments.size() != argument_types.size()) {
    throw_error(
        Status::invalid_argument(str_cat("function '", name, "' takes ", argument_types.size(), " arguments, not ",
                                         arguments.size(), argument_types.empty() ? ", or was moved from" : ""))
            .with_location(at.where));
  }
  std::vector<AnyOutput> inputs(arguments.begin(), arguments.end());
  std::vector<PartialShape> shapes = argument_shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_valid()) continue;  // an error of the node
    if (!shapes[i].is_compatible_with(inputs[i].shape())) {
      throw_error(Status::invalid_argument(str_cat("argument ", i, " of function '", name, "' has shape ",
                                                   inputs[i].shape().to_string(), ", not ", shapes[i].to_string()))
                      .with_location(graph->scope().where.value_or(at.where)));
    }
    if (!shapes[i].has_rank()) shapes[i] = inputs[i].shape();
  }
  bool sees_captures = true;
  for (const Endpoint edge : captures) {
    inputs.emplace_back(graph, edge);
    sees_captures &= graph->is_inside(graph->scope().function, graph->node(edge.node).function);
  }
  CallFunction::Attrs attrs{.function = {name},
                            .output_types = result_types,
                            .output_shapes = result_shapes,
                            .captured = sees_captures ? std::string() : captured_text(*graph, captures),
                            .is_inlined = is_inlined};
  if (!is_open) attrs.output_shapes = infer_results(*graph, begin, require_function(*graph, begin, name), shapes);
  return build<CallFunction>(*graph, inputs, std::move(attrs), at);
}

BuiltNode any_call(GraphStore& graph, BuildBody build_it, std::string_view name, const At& at,
                   FunctionBegin::Attrs attrs) {
  return define_function(graph, name, {}, {}, build_it, at, attrs).call({}, at);
}

BuiltNode any_branch(const AnyOutput& which, const std::vector<std::string>& branch_names,
                     FunctionRef<BodyResults(std::size_t)> build_it, std::string_view name, const At& at) {
  if (!which.is_valid()) {
    throw_error(Status::invalid_argument(str_cat(name, ": the condition is an empty Output")).with_location(at.where));
  }
  GraphStore& graph = *which.graph();
  const std::optional<std::source_location> around = graph.scope().where;
  const ScopeGuard place = enter_place(graph, at.where);
  GraphStore::Draft draft(graph);
  std::optional<ScopeGuard> names(enter_name_scope(graph, at.name.empty() ? name : at.name, at.where));
  CaptureList captures;
  std::vector<std::string> functions;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  for (std::size_t b = 0; b < branch_names.size(); ++b) {
    FunctionBody body(graph, branch_names[b], at.where, around);
    const BodyResults results = build_it(b);
    body.finish(results);
    captures.add(body);
    functions.push_back(body.name());
    if (b == 0) {
      for (const AnyOutput& edge : results.edges) {
        types.push_back(edge.dtype());
        shapes.push_back(edge.shape());
      }
      continue;
    }
    if (results.edges.size() != types.size()) {
      throw_error(Status::invalid_argument(str_cat(name, ": '", branch_names[b], "' gives ", results.edges.size(),
                                                   " results, and '", branch_names[0], "' ", types.size()))
                      .with_location(at.where));
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (results.edges[i].dtype() != types[i]) {
        throw_error(Status::invalid_argument(str_cat(name, ": result ", i, " is ", dtype_name(results.edges[i].dtype()),
                                                     " in '", branch_names[b], "', and ", dtype_name(types[i]), " in '",
                                                     branch_names[0], "'"))
                        .with_location(at.where));
      }
      shapes[i] = common_shape(shapes[i], results.edges[i].shape());
    }
  }
  if (!at.name.empty()) names.reset();
  const BuiltNode node =
      which.dtype() == DType::boolean
          ? build_call<If>(graph, {which}, captures, {{functions.at(0)}, {functions.at(1)}, types, shapes}, at)
          : build_call<Case>(graph, {which}, captures, {functions, types, shapes}, at);
  draft.publish();
  return node;
}

std::vector<std::string> numbered_branches(std::size_t n) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n; ++i) names.push_back(str_cat("branch_", i));
  return names;
}

/// Errors: InvalidArgument unless the variable may have every value that `next` may have.
inline void require_invariant(const std::string& variable, const AnyOutput& next, DType dtype,
                              const PartialShape& shape, std::source_location where) {
  if (next.dtype() != dtype) {
    throw_error(Status::invalid_argument(str_cat(variable, " enters an iteration as ", dtype_name(dtype),
                                                 " and leaves it as ", dtype_name(next.dtype())))
                    .with_location(where));
  }
  if (is_within(next.shape(), shape)) return;
  throw_error(Status::invalid_argument(str_cat(variable, " enters an iteration with shape ", shape.to_string(),
                                               " and leaves it with ", next.shape().to_string(),
                                               ": declare the shape that it has in all of them"))
                  .with_location(where));
}

/// The name of variable `i` in errors.
inline std::string variable_text(const LoopOptions& options, std::size_t i) {
  return str_cat(options.kind, ": ", options.variable, " ", i - options.num_unnamed);
}

BuiltNode any_loop(std::span<const AnyOutput> initial, BuildBody condition, BuildBody body, const LoopOptions& options,
                   const At& at) {
  const auto is_empty = [](const AnyOutput& variable) { return !variable.is_valid(); };
  if (initial.empty() || std::any_of(initial.begin(), initial.end(), is_empty)) {
    throw_error(
        Status::invalid_argument("while_loop: there are no variables, or one is empty").with_location(at.where));
  }
  GraphStore& graph = *initial[0].graph();
  const std::optional<std::source_location> around = graph.scope().where;
  const ScopeGuard place = enter_place(graph, at.where);
  if (!options.shapes.empty() && options.shapes.size() != initial.size()) {
    throw_error(Status::invalid_argument(str_cat("while_loop: ", options.shapes.size(), " shapes are declared for ",
                                                 initial.size(), " variables"))
                    .with_location(at.where));
  }
  GraphStore::Draft draft(graph);
  std::optional<ScopeGuard> names(enter_name_scope(graph, at.name.empty() ? "while" : at.name, at.where));
  While::Attrs attrs;
  attrs.parallel_iterations = options.parallel_iterations;
  attrs.max_kept_bytes = options.max_kept_bytes;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    attrs.output_types.push_back(initial[i].dtype());
    attrs.output_shapes.push_back(options.shapes.empty() ? initial[i].shape() : options.shapes[i]);
    if (!attrs.output_shapes[i].is_compatible_with(initial[i].shape())) {
      throw_error(Status::invalid_argument(str_cat(variable_text(options, i), " begins with shape ",
                                                   initial[i].shape().to_string(), ", which is not of the declared ",
                                                   attrs.output_shapes[i].to_string()))
                      .with_location(at.where));
    }
  }
  CaptureList captures;
  const auto build_one = [&](std::string_view name, BuildBody build_it) {
    FunctionBody one(graph, name, at.where, around);
    std::vector<AnyOutput> arguments;
    for (std::size_t i = 0; i < initial.size(); ++i) {
      arguments.push_back(one.add_argument(attrs.output_types[i], attrs.output_shapes[i]));
    }
    BodyResults results = build_it(arguments);
    one.finish(results);
    captures.add(one);
    return std::pair(std::move(results), one.name());
  };
  const auto [is_true, condition_name] = build_one("condition", condition);
  if (is_true.edges.size() != 1) {
    throw_error(
        Status::invalid_argument(str_cat("while_loop: the condition gives ", is_true.edges.size(), " values, not one"))
            .with_location(at.where));
  }
  const AnyOutput& goes_on = is_true.edges[0];
  if (goes_on.dtype() != DType::boolean || !goes_on.shape().is_compatible_with(Shape{})) {
    throw_error(Status::invalid_argument(str_cat("while_loop: the condition is a bool of shape [], not ",
                                                 dtype_name(goes_on.dtype()), " ", goes_on.shape().to_string()))
                    .with_location(at.where));
  }
  const auto [next, body_name] = build_one("body", body);
  if (next.edges.size() != initial.size()) {
    throw_error(Status::invalid_argument(str_cat("while_loop: the body gives ", next.edges.size(), " values for ",
                                                 initial.size(), " variables"))
                    .with_location(at.where));
  }
  for (std::size_t i = 0; i < initial.size(); ++i) {
    require_invariant(variable_text(options, i), next.edges[i], attrs.output_types[i], attrs.output_shapes[i],
                      at.where);
  }
  attrs.condition.name = condition_name;
  attrs.body.name = body_name;
  if (!at.name.empty()) names.reset();
  const BuiltNode node = build_call<While>(graph, {initial.begin(), initial.end()}, captures, std::move(attrs), at);
  draft.publish();
  return node;
}

}  // namespace dflow::detail
