#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

GraphStore& detail::graph_of(std::span<const AnyOutput> inputs, std::string_view op, const At& at) {
  for (const AnyOutput& input : inputs) {
    if (input.is_valid()) return *input.graph();
  }
  throw_error(
      Status::invalid_argument(str_cat(op, ": ", inputs.empty() ? "needs at least one input" : "all inputs are empty"))
          .with_node(op, at.name)
          .with_location(at.where));
}

}  // namespace dflow
