#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/matrix_expr.hpp>
#include <dflow/ops/linalg/matrix_shape.hpp>
#include <dflow/ops/linalg/solve.hpp>
#include <dflow/ops/math/cast.hpp>

namespace dflow {

namespace detail {

/// a [...batch, m, n] and b [...batch, m, k] give [...batch, n, k].
PartialShape solution_shape(const InferContext& context, const PartialShape& a) {
  const PartialShape b = context.with_rank_at_least(1, 2);
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  if (a.rank() != b.rank()) context.fail("the operands have different ranks");
  const int batch = a.rank() - 2;
  if (a[batch] != dynamic && b[batch] != dynamic && a[batch] != b[batch]) {
    context.fail(str_cat("the matrices have ", a[batch], " rows, the right-hand sides ", b[batch]));
  }
  return context.merge(a.subshape(0, batch), b.subshape(0, batch)).appended(a[batch + 1]).appended(b[batch + 1]);
}

/// The gradient by A of the solution x of A x = b, or A^H x = b, given that by b.
Expr solve_gradient(const Expr& x, const Expr& db, bool adjoint) {
  return -(adjoint ? product(x, db, false, true) : product(db, x, false, true));
}

}  // namespace detail

void MatrixInverse::infer(InferContext& context) { context.set_output(0, detail::square_matrices(context, 0)); }

void MatrixInverse::gradient(GradientContext& context) {
  using namespace detail;
  const Expr y = context.output(0), dy = context.dy();
  const Expr da = context.attrs<MatrixInverse>().adjoint ? product(product(y, dy, false, true), y)
                                                         : product(product(y, dy, true), y, false, true);
  context.set_dx(0, -da);
}

void MatrixDeterminant::infer(InferContext& context) {
  const PartialShape a = detail::square_matrices(context, 0);
  context.set_output(0, a.has_rank() ? a.subshape(0, a.rank() - 2) : a);
}

void MatrixDeterminant::gradient(GradientContext& context) {
  const Expr inverse = AnyOutput(build<MatrixInverse>({context.input(0)}, {.adjoint = true}));
  context.set_dx(0, detail::as_column(detail::as_column(context.dy() * conj(context.output(0)))) * inverse);
}

void MatrixSolve::infer(InferContext& context) {
  context.set_output(0, detail::solution_shape(context, detail::square_matrices(context, 0)));
}

void MatrixSolve::gradient(GradientContext& context) {
  const bool adjoint = context.attrs<MatrixSolve>().adjoint;
  const Expr db = AnyOutput(build<MatrixSolve>({context.input(0), context.dy()}, {.adjoint = !adjoint}));
  context.set_dx(0, detail::solve_gradient(context.output(0), db, adjoint));
  context.set_dx(1, db);
}

void MatrixTriangularSolve::infer(InferContext& context) {
  context.set_output(0, detail::solution_shape(context, detail::square_matrices(context, 0)));
}

void MatrixTriangularSolve::gradient(GradientContext& context) {
  const auto [lower, adjoint] = context.attrs<MatrixTriangularSolve>();
  const Expr db =
      AnyOutput(build<MatrixTriangularSolve>({context.input(0), context.dy()}, {.lower = lower, .adjoint = !adjoint}));
  const Expr da = detail::solve_gradient(context.output(0), db, adjoint);
  context.set_dx(0, detail::any_band_part(da, lower ? -1 : 0, lower ? 0 : -1));
  context.set_dx(1, db);
}

void MatrixSolveLs::infer(InferContext& context) {
  static_cast<void>(context.with_rank(2, 0));
  context.set_output(0, detail::solution_shape(context, context.with_rank_at_least(0, 2)));
}

/// With G = A^H A + l I and z = G^-1 dx, where A has no fewer rows than columns: db = A z and
/// dA = b z^H - A (x z^H + z x^H). Else, with G = A A^H + l I, y = G^-1 b and db = G^-1 A dx:
/// dA = y (dx - A^H db)^H - db x^H.
void MatrixSolveLs::gradient(GradientContext& context) {
  using namespace detail;
  const Expr a = context.input(0), b = context.input(1), x = context.output(0), dx = context.dy();
  const std::int64_t m = num_rows(a), n = num_columns(a);
  if (m == dynamic || n == dynamic) context.fail("the gradient needs to know the rows and columns of the matrices");
  const bool is_wide = m < n;
  Expr gram = product(a, a, !is_wide, is_wide);
  if (context.attrs<MatrixSolveLs>().fast) {
    gram = gram + diag(ones_like(diag_part(gram)) * Expr(cast_to(context.input(2), a.dtype())));
  }
  const auto solve = [&](const Expr& right) -> Expr { return AnyOutput(build<MatrixSolve>({gram, right})); };
  if (is_wide) {
    const Expr y = solve(b), db = solve(product(a, dx));
    context.set_dx(0, product(y, dx - product(a, db, true), false, true) - product(db, x, false, true));
    context.set_dx(1, db);
  } else {
    const Expr z = solve(dx), xz = product(x, z, false, true);
    context.set_dx(0, product(b, z, false, true) - product(a, xz + adjoint(xz)));
    context.set_dx(1, product(a, z));
  }
}

}  // namespace dflow
