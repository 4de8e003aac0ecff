#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/data_flow/embedding.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/sorted_segment.hpp>
#include <dflow/ops/sparse/embedding_sparse.hpp>

#include <array>
#include <limits>

namespace dflow::detail {

/// Rows of the table combined without weights, where the table is.
Expr rows_combined_in_place(const SparseLookup& lookup, const AnyOutput& ids, const AnyOutput& segments, const At& at) {
  GraphStore& graph = *ids.graph();
  // As any_rows_of: in a body of a loop or a branch the table may be a copy.
  const bool is_there = lookup.table.node().op->role == OpRole::read_variable && !graph.scope().function.is_valid();
  const ScopeGuard with =
      is_there ? enter_colocation(graph, lookup.table.operation(), at.where) : graph.enter(graph.scope());
  const std::array<AnyOutput, 3> edges{lookup.table, ids, segments};
  switch (lookup.combiner) {
    case Combiner::sum:
      return AnyOutput(build<SparseSegmentSum>(edges));
    case Combiner::mean:
      return AnyOutput(build<SparseSegmentMean>(edges));
    default:
      return AnyOutput(build<SparseSegmentSqrtN>(edges));
  }
}

/// Rows [n, width...] times weights [n], combined by segments in the type of the rows.
Expr combined_rows(const Expr& rows, const Expr& weights, const AnyOutput& segments, Combiner combiner) {
  const Expr sums = AnyOutput(build<SegmentSum>({rows * as_column(weights, rows), segments}));
  if (combiner == Combiner::sum) return sums;
  const Expr terms = combiner == Combiner::mean ? weights : weights * weights;
  const Expr total = AnyOutput(build<SegmentSum>({terms, segments}));
  // Where it is 0 the result is 0, and so is its gradient.
  const AnyOutput infinite = zeros_like(total) + std::numeric_limits<double>::infinity();
  const Expr divisor = AnyOutput(build<Select>({build<Equal>({total, scalar_like(total, 0)}), infinite, total}));
  return sums / as_column(combiner == Combiner::mean ? divisor : Expr(build<Sqrt>({divisor})), sums);
}

/// Zeros behind the rows, up to `count` [1] of them.
AnyOutput with_rows(const Expr& rows, const AnyOutput& count, const At& at) {
  const Expr shape = shape_of(rows);
  const Expr missing = Expr(cast_to(count, DType::int32)) - Expr(any_slice(shape, {0}, {1}, {}));
  const std::array<AnyOutput, 2> dims{missing, any_slice(shape, {1}, {-1}, {})};
  const std::array<AnyOutput, 2> parts{rows, build<Fill>({any_concat(0, dims), scalar_like(rows, 0)})};
  return any_concat(0, parts, at);
}

AnyOutput any_embedding_lookup_sparse(const SparseLookup& lookup, const AnySparseOutput& ids,
                                      const AnySparseOutput* weights, const At& at) {
  const std::array<AnyOutput, 3> edges{ids.values, ids.indices, ids.dense_shape};
  GraphStore& graph = graph_of(edges, "embedding_lookup_sparse", at);
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "embedding_lookup_sparse" : at.name, at.where);
  const AnyOutput first = build<Gather>({any_transpose(ids.indices, {}, {}), int32_constant(graph, 0)});
  const AnyOutput segments = cast_to(first, DType::int32), count = any_slice(ids.dense_shape, {0}, {1}, {});
  if (lookup.table.is_valid() && weights == nullptr) {
    return with_rows(rows_combined_in_place(lookup, ids.values, segments, at), count, {});
  }
  const AnyOutput rows = lookup.table.is_valid()
                             ? any_rows_of(lookup.table, ids.values, {.where = at.where})
                             : any_embedding_lookup(lookup.shards, ids.values, lookup.strategy, {.where = at.where});
  const Expr wide = widened(rows);
  const Expr weight = weights == nullptr
                          ? ones_like(Expr(cast_to(ids.values, wide.dtype())))
                          : Expr(build<Reshape>({cast_to(weights->values, wide.dtype()), shape_of(ids.values)}));
  return with_rows(cast_to(combined_rows(wide, weight, segments, lookup.combiner), rows.dtype()), count, {});
}

}  // namespace dflow::detail
