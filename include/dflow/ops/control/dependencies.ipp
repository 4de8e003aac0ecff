#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/dependencies.hpp>

namespace dflow {

AnyOutput detail::any_with_dependencies(std::span<const Operation> operations, const AnyOutput& x, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, Identity::name, at);
  const ScopeGuard after = enter_control_dependencies(graph, operations, at.where);
  return build<Identity>({x}, {}, at);
}

}  // namespace dflow
