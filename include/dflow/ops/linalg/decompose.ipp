#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/linalg/decompose.hpp>
#include <dflow/ops/linalg/matrix_expr.hpp>
#include <dflow/ops/linalg/matrix_shape.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <vector>

namespace dflow {

namespace detail {

/// The gradient by A of A = Q R with no more columns than rows.
Expr tall_qr_gradient(const Expr& q, const Expr& r, const Expr& dq, const Expr& dr) {
  const Expr qdq = product(q, dq, true), rdr = product(r, dr, false, true);
  const Expr skew = (qdq - adjoint(qdq)) + (rdr - adjoint(rdr));
  Expr da = product(q, dr + times_inverse_adjoint(any_band_part(skew, -1, 0), r)) +
            times_inverse_adjoint(dq - product(q, qdq), r);
  if (is_complex(q.dtype())) {
    const Expr phases = diag_part(rdr - adjoint(qdq));
    da = da + times_inverse_adjoint(q * as_row((conj(phases) - phases) * 0.5), r);
  }
  return da;
}

/// The part that counts of a gradient by values that are real in a complex element type.
Expr real_part(const Expr& x) { return is_complex(x.dtype()) ? (x + conj(x)) * 0.5 : x; }

/// A gradient U (...) V^H has this term in its middle for the vectors U with gradient dU: entry (i, j) of U^H dU,
/// divided by the difference of their eigenvalues.
Expr divided_by_gaps(const Expr& projected, const Expr& gaps) { return projected * reciprocal_or_zero(gaps); }

}  // namespace detail

void Cholesky::infer(InferContext& context) { context.set_output(0, detail::square_matrices(context, 0)); }

void Cholesky::gradient(GradientContext& context) {
  using namespace detail;
  const Expr l = context.output(0), middle = half_lower(product(l, context.dy(), true));
  const auto solve = [&](const Expr& x) -> Expr {
    return AnyOutput(build<MatrixTriangularSolve>({l, x}, {.adjoint = true}));
  };
  const Expr da = solve(adjoint(solve(middle)));
  context.set_dx(0, (da + adjoint(da)) * 0.5);
}

void Qr::infer(InferContext& context) {
  const PartialShape a = context.with_rank_at_least(0, 2);
  if (!a.has_rank()) {
    for (const int i : {0, 1}) context.set_output(i, PartialShape::unknown());
    return;
  }
  const PartialShape batch = a.subshape(0, a.rank() - 2);
  const std::int64_t m = a[a.rank() - 2], n = a[a.rank() - 1];
  const std::int64_t k = context.attrs<Qr>().full_matrices ? m : detail::smaller_dim(m, n);
  context.set_output(0, batch.appended(m).appended(k));
  context.set_output(1, batch.appended(k).appended(n));
}

void Qr::gradient(GradientContext& context) {
  using namespace detail;
  const Expr a = context.input(0), q = context.output(0), r = context.output(1), dq = context.dy(0), dr = context.dy(1);
  const std::int64_t m = num_rows(a), n = num_columns(a);
  if (m == dynamic || n == dynamic) context.fail("the gradient needs to know the rows and columns of the matrices");
  if (m >= n) {
    if (context.attrs<Qr>().full_matrices && m > n) {
      context.fail("full matrices of more rows than columns have no gradient");
    }
    return context.set_dx(0, tall_qr_gradient(q, r, dq, dr));
  }
  // A = [x y] = Q [u v]: v = Q^H y, and the rest is square.
  const Expr y = columns(a, m, n - m), dv = columns(dr, m, n - m);
  const Expr dx = tall_qr_gradient(q, columns(r, 0, m), dq + product(y, dv, false, true), columns(dr, 0, m));
  const std::vector<AnyOutput> parts{dx, product(q, dv)};
  context.set_dx(0, any_concat(a.shape().rank() - 1, parts));
}

void Svd::infer(InferContext& context) {
  const PartialShape a = context.with_rank_at_least(0, 2);
  const auto [compute_uv, full_matrices] = context.attrs<Svd>();
  for (const int i : {1, 2}) context.set_output(i, compute_uv ? PartialShape::unknown() : PartialShape{0});
  if (!a.has_rank()) return context.set_output(0, PartialShape::unknown());
  const PartialShape batch = a.subshape(0, a.rank() - 2);
  const std::int64_t m = a[a.rank() - 2], n = a[a.rank() - 1], k = detail::smaller_dim(m, n);
  context.set_output(0, batch.appended(k));
  if (!compute_uv) return;
  context.set_output(1, batch.appended(m).appended(full_matrices ? m : k));
  context.set_output(2, batch.appended(n).appended(full_matrices ? n : k));
}

void Svd::gradient(GradientContext& context) {
  using namespace detail;
  const Expr a = context.input(0), ds = real_part(context.dy(0));
  const auto [compute_uv, full_matrices] = context.attrs<Svd>();
  if (!compute_uv || !(context.has_dy(1) || context.has_dy(2))) {
    const BuiltNode reduced = build<Svd>({a});
    const Expr u = reduced.output(1), v = reduced.output(2);
    return context.set_dx(0, product(u * as_row(ds), v, false, true));
  }
  const std::int64_t m = num_rows(a), n = num_columns(a);
  if (full_matrices && (m != n || m == dynamic))
    context.fail("full matrices have a gradient only if they are known to be square");
  const Expr s = context.output(0), u = context.output(1), v = context.output(2), du = context.dy(1),
             dv = context.dy(2);
  const Expr udu = product(u, du, true), vdv = product(v, dv, true), inverse = reciprocal_or_zero(s);
  const Expr gaps = (as_row(s) - as_column(s)) * (as_row(s) + as_column(s));
  const Expr j = divided_by_gaps(udu, gaps), k = divided_by_gaps(vdv, gaps);
  Expr diagonal = ds;
  if (is_complex(a.dtype())) {
    const Expr phases = diag_part(vdv);
    diagonal = diagonal + (conj(phases) - phases) * 0.5 * inverse;
  }
  const Expr middle = (j + adjoint(j)) * as_row(s) + as_column(s) * (k + adjoint(k)) + diag(diagonal);
  Expr left = product(u, middle);
  // If the vectors do not span the whole space, this term moves them out of the space that they span.
  if (m == dynamic || n == dynamic || m > n) left = left + (du - product(u, udu)) * as_row(inverse);
  Expr da = product(left, v, false, true);
  if (m == dynamic || n == dynamic || m < n) da = da + product(u * as_row(inverse), dv - product(v, vdv), false, true);
  context.set_dx(0, da);
}

void SelfAdjointEig::infer(InferContext& context) {
  const PartialShape a = detail::square_matrices(context, 0);
  context.set_output(0, a.has_rank() ? a.erased(a.rank() - 1) : a);
  context.set_output(1, context.attrs<SelfAdjointEig>().compute_v ? a : PartialShape{0});
}

void SelfAdjointEig::gradient(GradientContext& context) {
  using namespace detail;
  const Expr a = context.input(0), de = context.dy(0);
  Expr e = context.output(0), v = context.output(1), middle = diag(de);
  if (!context.attrs<SelfAdjointEig>().compute_v) {
    v = build<SelfAdjointEig>({a}).output(1);
  } else if (context.has_dy(1)) {
    middle = middle + divided_by_gaps(product(v, context.dy(1), true), as_row(e) - as_column(e));
  }
  const Expr da = product(product(v, middle), v, false, true);
  context.set_dx(0, half_lower(da + adjoint(da)));
}

}  // namespace dflow
