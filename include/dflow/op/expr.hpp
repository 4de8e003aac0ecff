#pragma once

#include <dflow/graph/output.hpp>

namespace dflow {

/// An erased edge with arithmetic: what gradient functions are written in. A double on one side becomes a constant of
/// the edge's element type; shapes broadcast.
///
/// ```cpp
/// context.set_dx(0, context.dy() * 2.0 * context.input(0));   // Square
/// ```
class Expr : public AnyOutput {
 public:
  Expr() = default;
  Expr(const AnyOutput& edge) : AnyOutput(edge) {}  // NOLINT(google-explicit-constructor): the same thing, with operators
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);
Expr operator-(const Expr& x);

/// A scalar constant of `like`'s element type.
Expr scalar_like(const Expr& like, double value);
Expr zeros_like(const Expr& x);
Expr ones_like(const Expr& x);
/// x's shape as an int32 vector; a constant if it is known.
Expr shape_of(const Expr& x);
/// Sums `gradient` over the dimensions along which `like` was broadcast, so that it has the shape of `like`.
Expr sum_to_shape_of(const Expr& gradient, const Expr& like);

}  // namespace dflow
