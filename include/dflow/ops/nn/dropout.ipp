#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/dropout.hpp>

#include <string>
#include <utility>

namespace dflow {

namespace detail {

/// x / keep_prob where floor(keep_prob + u) is not 0, with u uniform in [0, 1), as in TensorFlow; 0 elsewhere.
/// ReluGrad makes the choice: unlike a product with the mask it makes 0 of Inf and NaN as well. keep_prob and u are
/// float if x has 16 bits: a sum of 16-bit numbers has one of 256 values below 1.
AnyOutput dropout_by(const Expr& x, const Expr& probability, const DropoutOptions& options, const At& at) {
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  const Expr keep_prob = widened(probability);
  const AnyOutput shape = shape_of(x);
  const RandomAttrs attrs{.seed = static_cast<std::int64_t>(next_op_seed(graph, options.seed))};
  const Expr uniform = AnyOutput(build<RandomUniform>(graph, {&shape, 1}, attrs, {}, one_type(keep_prob.dtype())));
  const AnyOutput mask = build<Floor>({uniform + keep_prob});
  return build<ReluGrad>({x / cast_to(keep_prob, x.dtype()), cast_to(mask, x.dtype())}, {}, at);
}

/// keep_prob itself, which fails the step unless it is a scalar in (0, 1].
AnyOutput checked_keep_prob(const Expr& keep_prob, const At& at) {
  GraphStore& graph = *keep_prob.graph();
  const Composite place(graph, at.where);
  Operation check;
  {
    // The check need not be made where x is, which may be a device without strings.
    GraphStore::Scope anywhere = graph.scope();
    anywhere.colocate({});
    const ScopeGuard outside = graph.enter(std::move(anywhere));
    const AnyOutput is_positive = build<Greater>({keep_prob, scalar_like(keep_prob, 0)});
    const AnyOutput is_at_most_one = build<LessEqual>({keep_prob, scalar_like(keep_prob, 1)});
    const AnyOutput is_probability = build<LogicalAnd>({is_positive, is_at_most_one});
    const AnyOutput message = any_constant(graph, Tensor<std::string>("dropout: keep_prob must be in (0, 1], got"), {});
    check = build<Assert>({is_probability, message, keep_prob});
  }
  return any_with_dependencies({&check, 1}, keep_prob, {});
}

}  // namespace detail

AnyOutput detail::any_dropout(const AnyOutput& x, double keep_prob, const DropoutOptions& options, const At& at) {
  static_cast<void>(graph_of({&x, 1}, RandomUniform::name, at));
  if (!(keep_prob > 0 && keep_prob <= 1)) {
    throw_error(Status::invalid_argument(str_cat("dropout: keep_prob must be in (0, 1], got ", keep_prob))
                    .with_location(at.where));
  }
  if (keep_prob == 1) return x;
  if (!is_16_bit_float(x.dtype())) return dropout_by(x, scalar_like(x, keep_prob), options, at);
  Tensor<float> wide({}, {static_cast<float>(keep_prob)});
  return dropout_by(x, any_constant(*x.graph(), std::move(wide), {.where = at.where}), options, at);
}

AnyOutput detail::any_dropout(const AnyOutput& x, const AnyOutput& keep_prob, const DropoutOptions& options,
                              const At& at) {
  static_cast<void>(graph_of({&x, 1}, RandomUniform::name, at));
  static_cast<void>(graph_of({&keep_prob, 1}, RandomUniform::name, at));
  if (keep_prob.shape().has_rank() && keep_prob.shape().rank() != 0) {
    throw_error(Status::invalid_argument(
                    str_cat("dropout: keep_prob must be a scalar, got shape ", keep_prob.shape().to_string()))
                    .with_location(at.where));
  }
  return dropout_by(x, checked_keep_prob(keep_prob, at), options, at);
}

}  // namespace dflow
