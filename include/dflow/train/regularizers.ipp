#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/regularizers.hpp>

#include <cmath>
#include <string_view>
#include <vector>

namespace dflow {

namespace regularizer {

namespace detail {

void require_factor(double factor, std::string_view name) {
  if (std::isfinite(factor) && factor >= 0) return;
  throw_error(Status::invalid_argument(
      str_cat("regularizer ", name, ": the factor must be finite and not negative, is ", factor)));
}

}  // namespace detail

Regularizer l1(double factor) {
  detail::require_factor(factor, "l1");
  return [factor](const AnyOutput& variable) -> AnyOutput {
    const AnyOutput size = build<Abs>({dflow::detail::widened(variable)});
    return dflow::detail::sum_of_all(size) * factor;
  };
}

Regularizer l2(double factor) {
  detail::require_factor(factor, "l2");
  return [factor](const AnyOutput& variable) -> AnyOutput {
    return Expr(AnyOutput(build<L2Loss>({dflow::detail::widened(variable)}))) * (2.0 * factor);
  };
}

Regularizer l1_l2(double l1_factor, double l2_factor) {
  return [first = l1(l1_factor), second = l2(l2_factor)](const AnyOutput& variable) -> AnyOutput {
    return Expr(first(variable)) + Expr(second(variable));
  };
}

}  // namespace regularizer

AnyOutput detail::any_regularization_loss(GraphStore& graph, DType dtype, const At& at) {
  const Composite place(graph, at.where);
  std::vector<AnyOutput> losses;
  for (const NodeId node : graph.collection("regularization_losses")) {
    losses.push_back(cast_to(AnyOutput(&graph, {node, 0}), dtype));
  }
  if (losses.empty()) return any_constant(graph, AnyTensor::zeros(dtype, {}), at);
  return build<AddN>(std::span<const AnyOutput>(losses), {}, at);
}

}  // namespace dflow
