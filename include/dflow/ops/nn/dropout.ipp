#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/dropout.hpp>

namespace dflow {

namespace detail {

/// x / keep_prob * floor(keep_prob + u) with u uniform in [0, 1), as TensorFlow's.
DFLOW_INLINE AnyOutput dropout_by(const Expr& x, const Expr& keep_prob, const DropoutOptions& options, const At& at) {
  GraphStore& graph = *x.graph();
  const At unnamed{.where = at.where};
  const AnyOutput shape = shape_of(x);
  TypeArgs types;
  types.push_back(x.dtype());
  const RandomAttrs attrs{.seed = static_cast<std::int64_t>(next_op_seed(graph, options.seed))};
  const Expr uniform = AnyOutput(build<RandomUniform>(graph, {&shape, 1}, attrs, unnamed, types));
  const Expr mask = AnyOutput(build<Floor>({uniform + keep_prob}, {}, unnamed));
  return build<Mul>({x / keep_prob, mask}, {}, at);
}

}  // namespace detail

DFLOW_INLINE AnyOutput detail::any_dropout(const AnyOutput& x, double keep_prob, const DropoutOptions& options,
                                           const At& at) {
  static_cast<void>(graph_of({&x, 1}, op_def<RandomUniform>, at));
  if (!(keep_prob > 0 && keep_prob <= 1)) {
    throw Error(
        invalid_argument(str_cat("dropout: keep_prob must be in (0, 1], got ", keep_prob)).with_location(at.where));
  }
  if (keep_prob == 1) return x;
  return dropout_by(x, scalar_like(x, keep_prob), options, at);
}

DFLOW_INLINE AnyOutput detail::any_dropout(const AnyOutput& x, const AnyOutput& keep_prob,
                                           const DropoutOptions& options, const At& at) {
  static_cast<void>(graph_of({&x, 1}, op_def<RandomUniform>, at));
  if (keep_prob.shape().has_rank() && keep_prob.shape().rank() != 0) {
    throw Error(
        invalid_argument(str_cat("dropout: keep_prob must be a scalar, got shape ", keep_prob.shape().to_string()))
            .with_location(at.where));
  }
  return dropout_by(x, keep_prob, options, at);
}

}  // namespace dflow
