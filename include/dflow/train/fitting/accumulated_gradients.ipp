#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/control/function_builders.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/train/fitting/accumulated_gradients.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dflow::train {

namespace detail {

AnyOutput zeros_for(const AnyVariable& variable) {
  GraphStore& graph = *variable.handle().graph();
  return dflow::detail::any_fill(graph, IndexList(variable.shape().to_shape()), AnyTensor::zeros(variable.dtype(), {}),
                                 {});
}

/// "accumulated_batches": how many have been added.
AnyVariable make_batch_count(GraphStore& graph) {
  GraphStore::Scope scope = graph.scope();
  scope.control_inputs.clear();
  const ScopeGuard outside = graph.enter(scope);
  const AnyOutput zero = dflow::detail::any_constant(graph, Tensor<float>::zeros({}), {});
  const std::string name = graph.unique_name("accumulated_batches").substr(scope.name_prefix.size());
  return AnyVariable::make(graph, zero, {.name = name, .trainable = false});
}

}  // namespace detail

AccumulatedGradients::AccumulatedGradients(const Optimizer& optimizer, const AnyOutput& loss,
                                           const MinimizeOptions& options, const At& at) {
  const std::vector<GradientAndVariable> gradients =
      optimizer.compute_gradients(loss, options.variables, options.differentiation(), at.where);
  GraphStore& graph = *loss.graph();
  const Composite place(graph, at.where);
  const AnyVariable count = detail::make_batch_count(graph);
  const AnyOutput one = dflow::detail::any_constant(graph, Tensor<float>::full({}, 1), {});
  const Expr batches = count.read_edge();
  std::vector<Operation> adds = detail::update_operations_of(loss, options);
  adds.push_back(count.assign_add(one));
  std::vector<AnyVariable> sums;
  std::vector<GradientAndVariable> means;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.exists()) continue;
    const DType dtype = dflow::detail::sum_type(variable.dtype());
    const AnyVariable& sum = sums.emplace_back(make_slot(variable, "accumulated", dtype));
    const ScopeGuard with = enter_colocation(graph, variable.handle().operation());
    adds.push_back(gradient.slices
                       ? sum.scatter_add(gradient.slices->indices, dflow::detail::widened(gradient.slices->values))
                       : sum.assign_add(dflow::detail::widened(gradient.dense)));
    const AnyOutput mean = build<Div>({sum.read_edge(), dflow::detail::cast_to(batches, dtype)});
    means.push_back({Gradient{mean, std::nullopt}, variable});
  }
  add_ = group(adds, {.where = at.where});
  const GraphStore::Scope around = graph.scope();
  const auto apply = [&] {
    // Slots are named as they are without sums.
    GraphStore::Scope own = graph.scope();
    own.name_prefix = around.name_prefix;
    const ScopeGuard names = graph.enter(std::move(own));
    const Operation updated = optimizer.apply_gradients(detail::changed(detail::in_this_body(means), options),
                                                        options.global_step, {.where = at.where});
    const ScopeGuard after = enter_control_dependencies(graph, std::span(&updated, 1));
    std::vector<Operation> resets{count.assign(detail::zeros_for(count))};
    for (const AnyVariable& sum : sums) resets.push_back(sum.assign(detail::zeros_for(sum)));
    return dflow::detail::BodyResults{{}, resets};
  };
  const AnyOutput has_any = build<GreaterEqual>({count.read_edge(), one});
  const auto apply_or_keep = [&](std::size_t branch) { return branch == 0 ? apply() : dflow::detail::BodyResults{}; };
  const Operation updated =
      dflow::detail::any_branch(has_any, {"apply", "keep"}, apply_or_keep, "accumulated_update", {.where = at.where});
  update_ = group({&updated, 1}, at);
}

}  // namespace dflow::train
