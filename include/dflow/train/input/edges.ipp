#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/train/input/edges.hpp>

#include <limits>
#include <string>
#include <utility>

namespace dflow::train::detail {

[[noreturn]] void reject_input(std::string_view function, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message)).with_node(function, at.name).with_location(at.where));
}

GraphStore& graph_of_input(const AnyOutput& x, std::string_view function, const At& at) {
  if (!x.is_valid()) reject_input(function, str_cat(function, ": an edge is empty"), at);
  return *x.graph();
}

Output<std::int32_t> int_constant(GraphStore& graph, std::int32_t value) {
  return Output<std::int32_t>::unchecked(dflow::detail::any_constant(graph, Tensor<std::int32_t>(value), {}));
}

Output<std::int32_t> num_rows(const AnyOutput& x) {
  const PartialShape& shape = x.shape();
  if (shape.has_rank() && shape.rank() > 0 && shape[0] != dynamic &&
      shape[0] <= std::numeric_limits<std::int32_t>::max()) {
    return int_constant(*x.graph(), static_cast<std::int32_t>(shape[0]));
  }
  const AnyOutput dims = build<ShapeOf>({x});
  return Output<std::int32_t>::unchecked(build<Gather>({dims, int_constant(*x.graph(), 0)}).output(0));
}

}  // namespace dflow::train::detail
