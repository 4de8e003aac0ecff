#pragma once

#include <dflow/op/expr.hpp>

#include <cstdint>

/// Functions for the gradients of linear algebra. Each works on the matrices in the last two dimensions.
namespace dflow::detail {

/// op(a) op(b), with the adjoint of an operand if its flag is set.
Expr product(const Expr& a, const Expr& b, bool adj_a = false, bool adj_b = false);
/// x^H.
Expr adjoint(const Expr& x);
/// The lower triangle of x, its diagonal taken half.
Expr half_lower(const Expr& x);
Expr diag(const Expr& diagonal);
Expr diag_part(const Expr& x);
/// x R^-H for an upper triangular R.
Expr times_inverse_adjoint(const Expr& x, const Expr& r);
/// A vector as one row, or as one column.
Expr as_row(const Expr& x);
Expr as_column(const Expr& x);
/// 1 / x, and 0 where x is 0, also in derivatives.
Expr reciprocal_or_zero(const Expr& x);
/// Columns [begin, begin + count); the rank is known.
Expr columns(const Expr& x, std::int64_t begin, std::int64_t count);
/// Rows or columns of the matrices in x: `dynamic` if they are unknown.
std::int64_t num_rows(const Expr& x);
std::int64_t num_columns(const Expr& x);

}  // namespace dflow::detail
