#pragma once

#include <dflow/graph/output.hpp>

namespace dflow {

class BuiltNode;

/// An erased edge with arithmetic, for writing gradient functions. A double on one side becomes a constant of the
/// edge's element type; shapes broadcast.
///
/// ```cpp
/// context.set_dx(0, context.dy() * 2.0 * context.input(0));   // Square
/// ```
class Expr : public AnyOutput {
 public:
  Expr() = default;
  Expr(const AnyOutput& edge)
      : AnyOutput(edge) {}      // NOLINT(google-explicit-constructor): the same thing, with operators
  Expr(const BuiltNode& node);  // NOLINT(google-explicit-constructor): its first output, as AnyOutput is (op/build.hpp)

  // Friends that only an Expr argument finds, so that typed edges have operators of their own.
  friend Expr operator+(const Expr& a, const Expr& b) { return a.plus(b); }
  friend Expr operator-(const Expr& a, const Expr& b) { return a.minus(b); }
  friend Expr operator*(const Expr& a, const Expr& b) { return a.times(b); }
  friend Expr operator/(const Expr& a, const Expr& b) { return a.over(b); }
  friend Expr operator+(const Expr& a, double b) { return a.plus(a.scalar(b)); }
  friend Expr operator-(const Expr& a, double b) { return a.minus(a.scalar(b)); }
  friend Expr operator*(const Expr& a, double b) { return a.times(a.scalar(b)); }
  friend Expr operator/(const Expr& a, double b) { return a.over(a.scalar(b)); }
  friend Expr operator+(double a, const Expr& b) { return b.scalar(a).plus(b); }
  friend Expr operator-(double a, const Expr& b) { return b.scalar(a).minus(b); }
  friend Expr operator*(double a, const Expr& b) { return b.scalar(a).times(b); }
  friend Expr operator/(double a, const Expr& b) { return b.scalar(a).over(b); }
  friend Expr operator-(const Expr& x) { return x.negated(); }

 private:
  Expr plus(const Expr& b) const;
  Expr minus(const Expr& b) const;
  Expr times(const Expr& b) const;
  Expr over(const Expr& b) const;
  Expr negated() const;
  Expr scalar(double value) const;
};

/// A scalar constant of `like`'s element type.
Expr scalar_like(const Expr& like, double value);
Expr zeros_like(const Expr& x);
Expr ones_like(const Expr& x);
/// The complex conjugate; x itself if its element type is real.
Expr conj(const Expr& x);
/// x's shape as an int32 vector; a constant if it is known.
Expr shape_of(const Expr& x);
/// Sums `gradient` over the dimensions along which `like` was broadcast, so that it has the shape of `like`.
Expr sum_to_shape_of(const Expr& gradient, const Expr& like);

}  // namespace dflow
