#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/sparse/sparse_joins.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace dflow {

namespace detail {

/// The number of different rows of a matrix.
std::int64_t count_different_rows(const AnyTensor& matrix) {
  using Row = std::span<const std::int64_t>;
  const Row all = matrix.span<std::int64_t>();
  const auto width = static_cast<std::size_t>(matrix.dim(1));
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < matrix.dim(0); ++i) rows.push_back(all.subspan(rows.size() * width, width));
  std::sort(rows.begin(), rows.end(), [](Row a, Row b) { return std::ranges::lexicographical_compare(a, b); });
  const auto end = std::unique(rows.begin(), rows.end(), [](Row a, Row b) { return std::ranges::equal(a, b); });
  return end - rows.begin();
}

}  // namespace detail

void SparseUnique::infer(InferContext& context) {
  const PartialShape indices = context.with_rank(0, 2);
  const std::int64_t rank = context.merge_dim(indices[1], context.with_rank(1, 1)[0]);
  const AnyTensor* const known = context.value(0);
  context.set_output(0, {known == nullptr ? dynamic : detail::count_different_rows(*known), rank});
  context.set_output(1, PartialShape{indices[0]});
}

namespace detail {

/// An axis of a sparse tensor, and what it is in arithmetic on indices.
struct SparseAxis {
  std::int64_t axis;
  AnyOutput on, off;  ///< int64 [rank]: 1 at the axis and 0 elsewhere, and the reverse
};

[[noreturn]] void reject_sparse(const std::string& why, std::string_view op, const At& at) {
  throw_error(Status::invalid_argument(str_cat(op, ": ", why)).with_node(op, at.name).with_location(at.where));
}

std::int64_t rank_of(const AnySparseOutput& x, std::string_view op, const At& at) {
  const PartialShape &indices = x.indices.shape(), &shape = x.dense_shape.shape();
  if (shape.has_rank() && shape.rank() == 1 && shape[0] != dynamic) return shape[0];
  if (indices.has_rank() && indices.rank() == 2 && indices[1] != dynamic) return indices[1];
  reject_sparse(str_cat("the rank must be known, and there are indices ", indices.to_string()), op, at);
}

SparseAxis axis_of(const AnySparseOutput& x, std::int64_t axis, std::string_view op, const At& at) {
  const std::int64_t rank = rank_of(x, op, at);
  if (rank > max_rank || axis < -rank || axis >= rank) {
    reject_sparse(
        str_cat("axis ", axis, " is outside [", -rank, ", ", rank, ") of indices ", x.indices.shape().to_string()), op,
        at);
  }
  if (axis < 0) axis += rank;
  Tensor<std::int64_t> on = Tensor<std::int64_t>::zeros({rank}), off = Tensor<std::int64_t>::full({rank}, 1);
  on(axis) = 1;
  off(axis) = 0;
  GraphStore& graph = *x.indices.graph();
  return {axis, any_constant(graph, on, {}), any_constant(graph, off, {})};
}

AnySparseOutput any_sparse_add(const AnySparseOutput& a, const AnySparseOutput& b, const AnyOutput& threshold,
                               const At& at) {
  const std::array<AnyOutput, 3> edges{a.indices, a.values, a.dense_shape};
  GraphStore& graph = graph_of(edges, "SparseAdd", at);
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "sparse_add" : at.name, at.where);
  const AnyOutput shape = any_assert_relation(CheckedRelation::equal, a.dense_shape, b.dense_shape,
                                              "SparseAdd: the dense shapes differ", {.where = at.where});
  const std::array<AnyOutput, 2> indices{a.indices, b.indices}, values{a.values, b.values};
  const BuiltNode unique = build<SparseUnique>({any_concat(0, indices), shape});
  const AnyOutput count = build<Gather>({shape_of(unique.output(0)), int32_constant(graph, 0)});
  const AnyOutput sums = build<UnsortedSegmentSum>({any_concat(0, values), unique.output(1), count});
  if (!threshold.is_valid()) return {unique.output(0), sums, shape};
  const AnyOutput is_large = build<LessEqual>({threshold, build<Abs>({sums})});
  const AnyOutput part = cast_to(is_large, DType::int32);
  return {any_dynamic_partition(unique.output(0), part, 2)[1], any_dynamic_partition(sums, part, 2)[1], shape};
}

AnySparseOutput any_sparse_concat(std::int64_t axis, const std::vector<AnySparseOutput>& xs, const At& at) {
  if (xs.empty()) {
    reject_sparse("there are no sparse tensors", "SparseConcat", at);
  }
  const std::array<AnyOutput, 3> edges{xs[0].indices, xs[0].values, xs[0].dense_shape};
  GraphStore& graph = graph_of(edges, "SparseConcat", at);
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "sparse_concat" : at.name, at.where);
  const SparseAxis along = axis_of(xs[0], axis, "SparseConcat", at);
  const Expr first = xs[0].dense_shape;
  std::vector<AnyOutput> indices{xs[0].indices}, values{xs[0].values};
  Expr shape = first;  // of all so far
  for (std::size_t i = 1; i < xs.size(); ++i) {
    if (rank_of(xs[i], "SparseConcat", at) != rank_of(xs[0], "SparseConcat", at)) {
      reject_sparse(str_cat("indices ", xs[i].indices.shape().to_string(), " of sparse tensor ", i,
                            " have another rank than indices ", xs[0].indices.shape().to_string()),
                    "SparseConcat", at);
    }
    const AnyOutput others =
        any_assert_relation(CheckedRelation::equal, Expr(xs[i].dense_shape) * Expr(along.off), first * Expr(along.off),
                            "SparseConcat: another dimension than that of the axis differs", {.where = at.where});
    indices.push_back(Expr(xs[i].indices) + shape * Expr(along.on));
    values.push_back(xs[i].values);
    shape = Expr(others) + (shape + Expr(xs[i].dense_shape)) * Expr(along.on);
  }
  return any_sparse_reorder({any_concat(0, indices), any_concat(0, values), shape}, {.where = at.where});
}

std::vector<AnySparseOutput> any_sparse_split(std::int64_t axis, std::int64_t count, const AnySparseOutput& x,
                                              const At& at) {
  const std::array<AnyOutput, 3> edges{x.indices, x.values, x.dense_shape};
  GraphStore& graph = graph_of(edges, "SparseSplit", at);
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "sparse_split" : at.name, at.where);
  if (count < 1 || count > std::numeric_limits<std::int32_t>::max()) {
    reject_sparse(str_cat("there cannot be ", count, " parts"), "SparseSplit", at);
  }
  const SparseAxis along = axis_of(x, axis, "SparseSplit", at);
  const AnyOutput column = int32_constant(graph, static_cast<std::int32_t>(along.axis));
  const AnyOutput parts = any_constant(graph, Tensor<std::int64_t>(count), {});
  const AnyOutput extent = build<Gather>({x.dense_shape, column});
  const Expr size =
      any_assert_relation(CheckedRelation::less_equal, parts, extent,
                          "SparseSplit: there are more parts than the dimension has", {.where = at.where});
  // The first `longer` parts have one more, and end before `behind`.
  const Expr all = extent, each = AnyOutput(build<Div>({extent, size}));
  const Expr longer = all - each * Expr(parts), behind = longer * (each + 1.0);
  // No part has an index that is not inside.
  const AnyOutput positions = build<SparsePositions>({x.indices, x.dense_shape, x.dense_shape}, {.exact = true});
  const Operation check = positions.operation();
  const AnyOutput indices = any_with_dependencies({&check, 1}, x.indices, {});
  const Expr number = AnyOutput(build<Gather>({any_transpose(indices, {}, {}), column}));
  const AnyOutput is_longer = build<Less>({number, behind});
  const auto chosen = [&](const Expr& in_longer, const Expr& in_others) {
    return Expr(any_select({is_longer, in_longer, in_others}, {}));
  };
  const Expr part = chosen(number / (each + 1.0), longer + (number - behind) / each);
  const AnyOutput place_of = cast_to(part, DType::int32);
  const std::vector<AnyOutput> rows = any_dynamic_partition(indices, place_of, count);
  const std::vector<AnyOutput> values = any_dynamic_partition(x.values, place_of, count);
  std::vector<AnySparseOutput> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const Expr index = any_constant(graph, Tensor<std::int64_t>(i), {});
    const Expr before = AnyOutput(build<Minimum>({index, longer}));
    const Expr start = each * index + before;
    const Expr extra = cast_to(build<Less>({index, longer}), DType::int64);
    const Expr on = along.on, off = along.off;
    const auto at_part = static_cast<std::size_t>(i);
    result.emplace_back(Expr(rows[at_part]) - start * on, values[at_part],
                        Expr(x.dense_shape) * off + (each + extra) * on);
  }
  return result;
}

}  // namespace detail

}  // namespace dflow
