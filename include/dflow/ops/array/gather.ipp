#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>

namespace dflow {

void Gather::infer(InferContext& context) {
  const PartialShape params = context.with_rank_at_least(0, 1);
  const PartialShape& indices = context.input(1);
  if (!params.has_rank() || !indices.has_rank()) return;
  if (indices.rank() + params.rank() - 1 > max_rank)
    context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  context.set_output(0, indices.concatenated(params.subshape(1, params.rank())));
}

namespace detail {

/// dy [...batch, ...row] as [number of indices, ...row].
AnyOutput rows_of(const Expr& dy, const Expr& indices, const Expr& params) {
  GraphStore& graph = *dy.graph();
  const PartialShape& shape = params.shape();
  if (shape.has_rank()) {
    SmallIntegers dims;
    dims.push_back(indices.shape().num_elements().value_or(-1));
    bool is_known = true;
    for (int i = 1; i < shape.rank(); ++i) {
      dims.push_back(shape[i]);
      is_known = is_known && shape[i] != dynamic && (shape[i] != 0 || dims[0] >= 0);
    }
    if (is_known) return build<Reshape>({dy, int32_constant(graph, dims.span())});
  }
  const AnyOutput count = any_reshape(build<SizeOf>({indices}), {1}, {});
  const AnyOutput parts[] = {count, any_slice(shape_of(params), {1}, {-1}, {})};
  return build<Reshape>({dy, any_concat(0, parts)});
}

}  // namespace detail

void Gather::gradient(GradientContext& context) {
  const Expr params = context.input(0), indices = context.input(1), dy = context.dy();
  if (indices.shape().rank() == 1) return context.set_dx(0, IndexedSlices{dy, indices, shape_of(params)});
  const AnyOutput flat = detail::any_reshape(indices, {-1}, {});
  context.set_dx(0, IndexedSlices{detail::rows_of(dy, indices, params), flat, shape_of(params)});
}

namespace detail {

AnyOutput any_rows_of(const AnyOutput& table, const AnyOutput& ids, const At& at) {
  const bool is_variable = table.is_valid() && table.node().op->role == OpRole::read_variable;
  // In a body of a loop or a branch, one transfer of the table may cost less than rows in each iteration.
  if (!is_variable || table.graph()->scope().function.is_valid()) return build<Gather>({table, ids}, {}, at);
  const ScopeGuard with = enter_colocation(*table.graph(), table.operation(), at.where);
  return build<Gather>({table, ids}, {}, at);
}

}  // namespace detail

}  // namespace dflow
