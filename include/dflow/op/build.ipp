#pragma once

#include <dflow/op/build.hpp>

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

AnyOutput detail::neighbour_among(std::span<const AnyOutput> edges) {
  for (const AnyOutput& edge : edges) {
    if (edge.is_valid() && !edge.is_dangling()) return edge;
  }
  return {};
}

}  // namespace dflow
