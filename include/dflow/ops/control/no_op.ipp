#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/no_op.hpp>

#include <string>
#include <utility>

namespace dflow {

Operation detail::no_op_after(GraphStore& graph, std::span<const Operation> operations, const At& at) {
  const ScopeGuard after = enter_control_dependencies(graph, operations, at.where);
  return build<NoOp>(graph, {}, {}, at);
}

Operation group(std::span<const Operation> operations, const At& at) {
  const auto reject = [&at](std::string message) {
    throw_error(Status::invalid_argument(std::move(message)).with_node(NoOp::name, at.name).with_location(at.where));
  };
  if (operations.empty()) reject("group: needs at least one operation");
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!operations[i].is_valid()) reject(str_cat("group: operation ", i, " is empty"));
    if (!operations[i].shares_graph(operations.front())) {
      reject(str_cat("group: operation ", i, " belongs to another graph"));
    }
  }
  return detail::no_op_after(*operations.front().graph(), operations, at);
}

Operation no_op(Graph& graph, const At& at) { return detail::no_op_after(*graph.store(), {}, at); }

}  // namespace dflow
