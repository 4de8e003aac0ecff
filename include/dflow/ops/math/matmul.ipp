#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/matmul.hpp>

namespace dflow {

PartialShape detail::infer_product(const InferContext& context, bool transpose_a, bool transpose_b) {
  const PartialShape a = context.with_rank(0, 2), b = context.with_rank(1, 2);
  const std::int64_t inner_a = a[transpose_a ? 0 : 1], inner_b = b[transpose_b ? 1 : 0];
  if (inner_a != dynamic && inner_b != dynamic && inner_a != inner_b) {
    context.fail(str_cat("inner dimensions ", inner_a, " and ", inner_b, " differ"));
  }
  return {a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]};
}

void MatMul::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<MatMul>();
  context.set_output(0, detail::infer_product(context, attrs.transpose_a, attrs.transpose_b));
}

/// y = op(a) op(b): da = dy op(b)^T and db = op(a)^T dy, transposed back where the operand was; complex operands are
/// conjugated, as TensorFlow does.
void MatMul::gradient(GradientContext& context) {
  const auto [ta, tb] = context.attrs<MatMul>();
  const Expr a = conj(context.input(0)), b = conj(context.input(1)), dy = context.dy();
  const auto product = [](const Expr& x, const Expr& y, bool tx, bool ty) -> AnyOutput {
    return build<MatMul>({x, y}, {.transpose_a = tx, .transpose_b = ty});
  };
  context.set_dx(0, ta ? product(b, dy, tb, true) : product(dy, b, false, !tb));
  context.set_dx(1, tb ? product(dy, a, true, ta) : product(a, dy, !ta, false));
}

}  // namespace dflow
