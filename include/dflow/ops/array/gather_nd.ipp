#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/gather_nd.hpp>
#include <dflow/ops/math/cast.hpp>

#include <initializer_list>
#include <optional>

namespace dflow {

namespace detail {

/// [n..., row...] for indices [n..., d] on input `i` and a target [limits..., row...] with d limits, as far as it is
/// known.
PartialShape infer_named_rows(const InferContext& context, int i, const PartialShape& target) {
  const PartialShape indices = context.with_rank_at_least(i, 1);
  if (!indices.has_rank()) return PartialShape::unknown();
  const std::int64_t depth = indices[indices.rank() - 1];
  const int most = target.has_rank() ? target.rank() : max_rank;
  if (depth > most) context.fail(str_cat("tuples of ", depth, " indices name places in ", most, " dimensions"));
  if (depth == dynamic || !target.has_rank()) return PartialShape::unknown();
  const PartialShape row = target.subshape(static_cast<int>(depth), target.rank());
  if (indices.rank() - 1 + row.rank() > max_rank)
    context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  return indices.subshape(0, indices.rank() - 1).concatenated(row);
}

/// The dimensions of x in the type that a node's indices have.
AnyOutput dims_in(GraphStore& graph, const AnyOutput& x, DType dtype) {
  const AnyOutput dims = shape_of(x);
  if (dtype == DType::int32) return dims;
  const std::optional<SmallIntegers> known = constant_integers(dims);
  return known ? IndexList(known->span()).edge(graph, dtype, {}) : cast_to(dims, dtype);
}

}  // namespace detail

void GatherNd::infer(InferContext& context) {
  context.set_output(0, detail::infer_named_rows(context, 1, context.input(0)));
}

void GatherNd::gradient(GradientContext& context) {
  const Expr indices = context.input(1);
  const AnyOutput dims = detail::dims_in(context.graph(), context.input(0), indices.dtype());
  context.set_dx(0, build<ScatterNd>({indices, context.dy(), dims}));
}

void ScatterNd::infer(InferContext& context) {
  detail::infer_shape_argument(context, 2);
  const PartialShape target = context.value_as_shape(2).value_or(PartialShape::unknown());
  static_cast<void>(context.merge(detail::infer_named_rows(context, 0, target), context.input(1)));
}

void ScatterNd::gradient(GradientContext& context) {
  context.set_dx(1, build<GatherNd>({context.dy(), context.input(0)}));
}

AnyOutput detail::any_scatter_nd(const AnyOutput& indices, const AnyOutput& updates, const IndexList& shape,
                                 const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{indices, updates}, ScatterNd::name, at);
  const bool is_wide = indices.dtype() == DType::int64 || shape.dtype() == DType::int64;
  const DType index = is_wide ? DType::int64 : DType::int32;
  const auto widened = [&](const AnyOutput& x) { return x.dtype() == index ? x : cast_to(x, index); };
  return build<ScatterNd>({widened(indices), updates, widened(shape.edge(graph, index, at))}, {}, at);
}

}  // namespace dflow
