#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/no_op.hpp>

namespace dflow {

DFLOW_INLINE Operation detail::no_op_after(GraphStore& graph, std::span<const Operation> operations, const At& at) {
  const ScopeGuard after = enter_control_dependencies(graph, operations);
  return build<NoOp>(graph, {}, {}, at);
}

DFLOW_INLINE Operation group(std::span<const Operation> operations, const At& at) {
  if (operations.empty() || !operations.front().is_valid()) {
    throw Error(invalid_argument("group: needs at least one operation").with_location(at.where));
  }
  return detail::no_op_after(*operations.front().graph(), operations, at);
}

DFLOW_INLINE Operation no_op(Graph& graph, const At& at) { return detail::no_op_after(*graph.store(), {}, at); }

}  // namespace dflow
