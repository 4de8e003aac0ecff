#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/matrix_expr.hpp>
#include <dflow/ops/linalg/solve.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>

#include <vector>

namespace dflow {

Expr detail::product(const Expr& a, const Expr& b, bool adj_a, bool adj_b) {
  return AnyOutput(build<BatchMatMul>({a, b}, {.adj_x = adj_a, .adj_y = adj_b}));
}

Expr detail::adjoint(const Expr& x) {
  const Expr conjugate = conj(x);
  if (x.shape().has_rank()) {
    const int rank = x.shape().rank();
    SmallIntegers perm;
    for (int i = 0; i < rank - 2; ++i) perm.push_back(i);
    perm.push_back(rank - 1);
    perm.push_back(rank - 2);
    return any_transpose(conjugate, perm.span(), {});
  }
  const Expr rank = AnyOutput(build<RankOf>({x}));
  const std::vector<AnyOutput> perm{counting(rank - 2.0), any_reshape(rank - 1.0, {1}, {}),
                                    any_reshape(rank - 2.0, {1}, {})};
  return AnyOutput(build<Transpose>({conjugate, any_concat(0, perm)}));
}

Expr detail::half_lower(const Expr& x) { return any_band_part(x, -1, 0) - diag(diag_part(x) * 0.5); }

Expr detail::diag(const Expr& diagonal) { return AnyOutput(build<MatrixDiag>({diagonal})); }

Expr detail::diag_part(const Expr& x) { return AnyOutput(build<MatrixDiagPart>({x})); }

Expr detail::times_inverse_adjoint(const Expr& x, const Expr& r) {
  return adjoint(AnyOutput(build<MatrixTriangularSolve>({r, adjoint(x)}, {.lower = false})));
}

Expr detail::as_row(const Expr& x) { return any_expand_dims(x, -2, {}); }

Expr detail::as_column(const Expr& x) { return any_expand_dims(x, -1, {}); }

Expr detail::reciprocal_or_zero(const Expr& x) {
  const Expr zeros = zeros_like(x), ones = ones_like(x);
  const AnyOutput is_zero = build<Equal>({x, zeros});
  const Expr divisor = AnyOutput(build<Select>({is_zero, ones, x}));
  return AnyOutput(build<Select>({is_zero, zeros, ones / divisor}));
}

Expr detail::columns(const Expr& x, std::int64_t begin, std::int64_t count) {
  SmallIntegers first, size;
  for (int i = 0; i < x.shape().rank() - 1; ++i) first.push_back(0), size.push_back(-1);
  first.push_back(begin);
  size.push_back(count);
  return any_slice(x, first.span(), size.span(), {});
}

std::int64_t detail::num_rows(const Expr& x) {
  const PartialShape shape = x.shape();
  return shape.has_rank() ? shape[shape.rank() - 2] : dynamic;
}

std::int64_t detail::num_columns(const Expr& x) {
  const PartialShape shape = x.shape();
  return shape.has_rank() ? shape[shape.rank() - 1] : dynamic;
}

}  // namespace dflow
