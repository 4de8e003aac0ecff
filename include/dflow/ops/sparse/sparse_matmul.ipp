#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/sparse/sparse_matmul.hpp>

namespace dflow {

void SparseTensorDenseMatMul::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<SparseTensorDenseMatMul>();
  const PartialShape indices = context.with_rank(0, 2), b = context.with_rank(3, 2);
  static_cast<void>(context.merge_dim(indices[1], 2));
  static_cast<void>(context.merge_dim(indices[0], context.with_rank(1, 1)[0]));
  static_cast<void>(context.merge_dim(context.with_rank(2, 1)[0], 2));
  const PartialShape a = context.value_as_shape(2).value_or(PartialShape::unknown(2));
  const std::int64_t inner_a = a[attrs.adjoint_a ? 0 : 1], inner_b = b[attrs.adjoint_b ? 1 : 0];
  if (inner_a != dynamic && inner_b != dynamic && inner_a != inner_b) {
    context.fail(str_cat("inner dimensions ", inner_a, " and ", inner_b, " differ"));
  }
  context.set_output(0, {a[attrs.adjoint_a ? 1 : 0], b[attrs.adjoint_b ? 0 : 1]});
}

/// y = op(a) op(b): da = dy op(b)^H at the indices of a, and db = op(a)^H dy, each as the operand was given.
void SparseTensorDenseMatMul::gradient(GradientContext& context) {
  const auto [adjoint_a, adjoint_b] = context.attrs<SparseTensorDenseMatMul>();
  const Expr indices = context.input(0), values = context.input(1), shape = context.input(2), b = context.input(3);
  const Expr dy = context.dy();
  const auto transposed = [](const Expr& x) -> Expr { return detail::any_transpose(x, {}, {}); };
  const auto column = [&](std::int32_t i) -> Expr {
    return AnyOutput(
        build<Gather>({transposed(indices), detail::any_constant(context.graph(), Tensor<std::int32_t>(i), {})}));
  };
  const Expr of_dy = AnyOutput(build<Gather>({dy, column(adjoint_a ? 1 : 0)}));
  const Expr rows = conj(adjoint_b ? conj(transposed(b)) : b);
  const Expr of_b = AnyOutput(build<Gather>({rows, column(adjoint_a ? 0 : 1)}));
  const Expr terms = of_dy * of_b;
  const Expr sums = AnyOutput(build<Sum>({terms, detail::int32_constant(context.graph(), 1)}));
  context.set_dx(1, adjoint_a ? conj(sums) : sums);
  const Expr db = AnyOutput(build<SparseTensorDenseMatMul>({indices, values, shape, dy}, {.adjoint_a = !adjoint_a}));
  context.set_dx(3, adjoint_b ? conj(transposed(db)) : db);
}

}  // namespace dflow
