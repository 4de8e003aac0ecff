#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build.hpp>
#include <dflow/op/build_on.hpp>

namespace dflow {

GraphStore& detail::graph_of(std::span<const AnyOutput> inputs, std::string_view op, const At& at) {
  for (const AnyOutput& input : inputs) {
    if (input.is_valid() && !input.is_dangling()) return *input.graph();
  }
  std::string_view what = "needs at least one input";
  for (const AnyOutput& input : inputs) {
    what = input.is_valid() ? "an input belongs to a graph that is gone" : "all inputs are empty";
    if (input.is_valid()) break;
  }
  throw_error(Status::invalid_argument(str_cat(op, ": ", what)).with_node(op, at.name).with_location(at.where));
}

ScopeGuard detail::enter_without_control_inputs(GraphStore& graph) {
  GraphStore::Scope scope = graph.scope();
  scope.control_inputs.clear();
  return graph.enter(scope);
}

ScopeGuard detail::enter_beside(const AnyOutput& handle, std::string_view op, const At& at) {
  return enter_colocation(graph_of({&handle, 1}, op, at), handle.operation(), at.where);
}

AnyOutput detail::neighbour_among(std::span<const AnyOutput> edges) {
  for (const AnyOutput& edge : edges) {
    if (edge.is_valid() && !edge.is_dangling()) return edge;
  }
  return {};
}

}  // namespace dflow
