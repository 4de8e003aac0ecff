#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/session/compiled_function.hpp>

#include <algorithm>
#include <string>
#include <unordered_set>

namespace dflow {

Updates& Updates::add(const AnyVariable& variable, const AnyOutput& value) {
  updates_.push_back({variable, value});
  return *this;
}

}  // namespace dflow

namespace dflow::detail {

void require_shape_of_each(std::size_t given, std::size_t wanted, std::source_location where) {
  if (given == wanted) return;
  throw_error(Status::invalid_argument(str_cat("plain_function: ", given, " shapes for ", wanted, " arguments"))
                  .with_location(where));
}

Operation build_function(const Session& session, std::span<const AnyOutput> inputs, std::span<AnyOutput> outputs,
                         std::span<const Operation> operations, const Updates& updates, const CompileOptions& options,
                         std::source_location where) {
  const auto require_own = [&](const Operation& of, std::string_view what, std::size_t i) {
    if (of.is_of(session.graph())) return;
    if (!of.is_valid()) {
      throw_error(Status::invalid_argument(str_cat("compile: ", what, " ", i, " is empty")).with_location(where));
    }
    if (of.is_dangling()) {
      throw_error(Status::invalid_argument(str_cat("compile: ", what, " ", i, " belongs to a graph that is gone"))
                      .with_location(where));
    }
    const Node& node = of.node();
    throw_error(Status::invalid_argument(str_cat("compile: ", what, " ", i,
                                                 " belongs to another graph than the session, built ", "at ",
                                                 node.where.file_name(), ":", node.where.line()))
                    .with_node(node.op->name, node.name)
                    .with_location(where));
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) require_own(inputs[i].operation(), "input", i);
  for (std::size_t i = 0; i < outputs.size(); ++i) require_own(outputs[i].operation(), "output", i);
  for (std::size_t i = 0; i < operations.size(); ++i) require_own(operations[i], "operation", i);
  const std::vector<Updates::Update>& all = updates.all();
  std::unordered_set<NodeId> updated;
  for (std::size_t i = 0; i < all.size(); ++i) {
    require_own(all[i].variable.handle().operation(), "variable", i);
    require_own(all[i].value.operation(), "new value", i);
    if (!all[i].variable.shape().is_compatible_with(all[i].value.shape())) {
      throw_error(
          Status::invalid_argument(str_cat("compile: variable '", all[i].variable.name(), "' of shape ",
                                           all[i].variable.shape().to_string(), " is updated to an edge of shape ",
                                           all[i].value.shape().to_string()))
              .with_location(where));
    }
    if (updated.insert(all[i].variable.handle().node_id()).second) continue;
    throw_error(Status::invalid_argument(str_cat("compile: variable '", all[i].variable.name(), "' is updated twice"))
                    .with_location(where));
  }
  if (all.empty() && outputs.empty() && operations.empty()) {
    throw_error(Status::invalid_argument("compile: there are neither outputs nor updates").with_location(where));
  }
  const bool has_givens = !options.givens.pairs().empty();
  if (all.empty() && (!has_givens || outputs.empty())) return {};

  GraphStore& graph = *(all.empty() ? outputs.front().graph() : all.front().variable.handle().graph());
  const ScopeGuard place = enter_place(graph, where);
  GraphStore::Draft draft(graph);
  std::vector<AnyOutput> edges(outputs.begin(), outputs.end());
  for (const Updates::Update& each : all) edges.push_back(each.value);
  if (has_givens) edges = any_substitute(edges, options.givens, options.name, where);
  std::copy_n(edges.begin(), outputs.size(), outputs.begin());
  if (all.empty()) {
    draft.publish();
    return {};
  }
  std::vector<Operation> first(operations.begin(), operations.end());
  for (const AnyOutput& edge : edges) first.push_back(edge.operation());
  std::vector<Operation> assigned;
  assigned.reserve(all.size());
  const ScopeGuard scope = enter_name_scope(graph, options.name, where);
  const Operation computed = group(first, {.name = "computed"});
  {
    const ScopeGuard after = enter_control_dependencies(graph, std::span(&computed, 1));
    for (std::size_t i = 0; i < all.size(); ++i) {
      assigned.push_back(all[i].variable.assign(edges[outputs.size() + i]));
    }
  }
  const Operation all_assigned = group(assigned, {.name = "updated"});
  draft.publish();
  return all_assigned;
}

}  // namespace dflow::detail
