#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/sparse/sparse_indices.hpp>

#include <array>

namespace dflow {

void SparsePositions::infer(InferContext& context) {
  const PartialShape indices = context.with_rank(0, 2), shape = context.with_rank(1, 1);
  const std::int64_t rank = context.merge_dim(indices[1], shape[0]), target = context.with_rank(2, 1)[0];
  if (rank != dynamic && target != dynamic && target > rank) {
    context.fail(str_cat("target_shape has ", target, " dimensions, and dense_shape ", rank));
  }
  context.set_output(0, PartialShape{indices[0]});
}

void SparseOrder::infer(InferContext& context) {
  const PartialShape indices = context.with_rank(0, 2);
  static_cast<void>(context.merge_dim(indices[1], context.with_rank(1, 1)[0]));
  context.set_output(0, PartialShape{indices[0]});
}

void SparseToDense::infer(InferContext& context) {
  const PartialShape &indices = context.input(0), &values = context.input(2);
  const std::int64_t rank = context.with_rank(1, 1)[0];
  static_cast<void>(context.with_rank(3, 0));
  if (indices.has_rank()) {
    if (indices.rank() > 2) context.fail("sparse_indices has more than two dimensions");
    static_cast<void>(context.merge_dim(rank, indices.rank() == 2 ? indices[1] : 1));
  }
  if (values.has_rank() && values.rank() != 0) {
    static_cast<void>(context.with_rank(2, 1));
    if (indices.has_rank()) static_cast<void>(context.merge_dim(values[0], indices.rank() == 0 ? 1 : indices[0]));
  }
  if (const std::optional<PartialShape> shape = context.value_as_shape(1)) {
    context.set_output(0, *shape);
  } else if (rank != dynamic && rank <= max_rank) {
    context.set_output(0, PartialShape::unknown(static_cast<int>(rank)));
  }
}

namespace detail {

AnyOutput shape64_of(const Expr& x) { return cast_to(shape_of(x), DType::int64); }
AnyOutput flat(const AnyOutput& x) { return any_reshape(x, {-1}, {}); }

}  // namespace detail

/// Each value has the gradient of its element, and the default value that of all others.
void SparseToDense::gradient(GradientContext& context) {
  const Expr indices = context.input(0), shape = context.input(1), values = context.input(2), dy = context.dy();
  const Expr minus_one = detail::any_reshape(scalar_like(indices, -1), {1}, {});
  const std::array<AnyOutput, 2> dims{detail::cast_to(minus_one, DType::int32), shape_of(shape)};
  const AnyOutput rows = build<Reshape>({detail::cast_to(indices, DType::int64), detail::any_concat(0, dims)});
  const AnyOutput shape64 = detail::cast_to(shape, DType::int64);
  const AnyOutput positions = build<SparsePositions>({rows, shape64, shape64});
  const Expr taken = AnyOutput(build<Gather>({detail::flat(dy), positions}));
  context.set_dx(2, sum_to_shape_of(taken, values));
  context.set_dx(3, detail::sum_of_all(dy) - detail::sum_of_all(taken));
}

namespace detail {

AnySparseOutput any_sparse_placeholder(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at) {
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "sparse_placeholder" : at.name, at.where);
  const std::int64_t rank = shape.has_rank() ? shape.rank() : dynamic;
  const AnyOutput indices =
      any_placeholder(graph, DType::int64, {dynamic, rank}, {.name = "indices", .where = at.where});
  const AnyOutput values = any_placeholder(graph, dtype, {dynamic}, {.name = "values", .where = at.where});
  return {indices, values, any_placeholder(graph, DType::int64, {rank}, {.name = "shape", .where = at.where})};
}

AnySparseOutput any_sparse_reorder(const AnySparseOutput& x, const At& at) {
  const std::array<AnyOutput, 2> edges{x.indices, x.dense_shape};
  const Composite place(graph_of(edges, "SparseReorder", at), at.where);
  const AnyOutput order = build<SparseOrder>(edges, {}, at);
  return {build<Gather>({x.indices, order}), build<Gather>({x.values, order}), x.dense_shape};
}

AnyOutput any_sparse_reduce_sum(const AnySparseOutput& x, const IndexList& axes, bool keep_dims, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{x.values, x.indices}, "SparseReduceSum", at);
  const Composite place(graph, at.where);
  if (!axes.is_given()) {
    const Expr sum = sum_of_all(x.values);
    return keep_dims ? AnyOutput(build<Reshape>({sum, ones_like(x.dense_shape)}, {}, at)) : AnyOutput(sum);
  }
  const AnyOutput axis = axes.edge(graph, DType::int32, at);
  const AnyOutput kept = build<ReducedShape>({cast_to(x.dense_shape, DType::int32), axis});
  const AnyOutput positions = build<SparsePositions>({x.indices, x.dense_shape, cast_to(kept, DType::int64)});
  const AnyOutput sums =
      build<UnsortedSegmentSum>({x.values, positions, build<Prod>({kept, int32_constant(graph, 0)})});
  if (keep_dims) return build<Reshape>({sums, kept}, {}, at);
  return build<Sum>({build<Reshape>({sums, kept}), axis}, {}, at);
}

AnyOutput any_sparse_tensor_dense_add(const AnySparseOutput& a, const AnyOutput& b, const At& at) {
  const std::array<AnyOutput, 3> edges{a.indices, a.dense_shape, b};
  const Composite place(graph_of(edges, "SparseTensorDenseAdd", at), at.where);
  const AnyOutput positions = build<SparsePositions>({a.indices, a.dense_shape, shape64_of(b)}, {.exact = true});
  const AnyOutput sums = build<UnsortedSegmentSum>({a.values, positions, build<SizeOf>({b})});
  return build<Add>({build<Reshape>({sums, shape_of(b)}), b}, {}, at);
}

AnySparseOutput any_sparse_dense_cwise(const AnySparseOutput& x, const AnyOutput& dense, bool divides, const At& at) {
  const std::array<AnyOutput, 3> edges{x.indices, x.dense_shape, dense};
  const Composite place(graph_of(edges, divides ? "SparseDenseCwiseDiv" : "SparseDenseCwiseMul", at), at.where);
  const AnyOutput positions = build<SparsePositions>({x.indices, x.dense_shape, shape64_of(dense)});
  const AnyOutput beside = build<Gather>({flat(dense), positions});
  const BuiltNode values = divides ? build<Div>({x.values, beside}, {}, at) : build<Mul>({x.values, beside}, {}, at);
  return {x.indices, values, x.dense_shape};
}

}  // namespace detail

}  // namespace dflow
