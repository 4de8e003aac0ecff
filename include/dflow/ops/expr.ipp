#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/unary.hpp>

#include <limits>
#include <vector>

namespace dflow {

namespace detail {

/// A gradient's nodes are blamed on the line that built the edge the gradient comes from.
At built_where(const AnyOutput& x) { return {.where = x.node().where}; }

template <class O>
Expr combine_exprs(const Expr& a, const Expr& b) {
  return AnyOutput(build<O>({a, b}, {}, built_where(a)));
}

}  // namespace detail

Expr Expr::plus(const Expr& b) const { return detail::combine_exprs<Add>(*this, b); }
Expr Expr::minus(const Expr& b) const { return detail::combine_exprs<Sub>(*this, b); }
Expr Expr::times(const Expr& b) const { return detail::combine_exprs<Mul>(*this, b); }
Expr Expr::over(const Expr& b) const { return detail::combine_exprs<Div>(*this, b); }
Expr Expr::negated() const { return AnyOutput(build<Neg>({*this}, {}, detail::built_where(*this))); }
Expr Expr::scalar(double value) const { return scalar_like(*this, value); }

Expr scalar_like(const Expr& like, double value) {
  AnyTensor scalar = visit_dtype<NumberTypes>(like.dtype(), [&]<class T>() -> AnyTensor {
    if constexpr (is_complex_element<T>) {
      return Tensor<T>({}, {T(static_cast<typename T::value_type>(value))});
    } else {
      return Tensor<T>({}, {static_cast<T>(value)});
    }
  });
  return detail::any_constant(*like.graph(), std::move(scalar), detail::built_where(like));
}

Expr zeros_like(const Expr& x) { return AnyOutput(build<ZerosLike>({x}, {}, detail::built_where(x))); }
Expr ones_like(const Expr& x) { return AnyOutput(build<OnesLike>({x}, {}, detail::built_where(x))); }

Expr conj(const Expr& x) {
  return is_complex(x.dtype()) ? Expr(AnyOutput(build<Conj>({x}, {}, detail::built_where(x)))) : x;
}

Expr shape_of(const Expr& x) {
  const PartialShape& shape = x.shape();
  bool is_known = shape.has_rank();
  std::vector<std::int32_t> extents;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == dynamic || dim > std::numeric_limits<std::int32_t>::max()) is_known = false;
    extents.push_back(static_cast<std::int32_t>(dim));
  }
  if (!is_known) return AnyOutput(build<ShapeOf>({x}, {}, detail::built_where(x)));
  const Shape vector{static_cast<std::int64_t>(extents.size())};
  return detail::any_constant(*x.graph(), Tensor<std::int32_t>(vector, extents), detail::built_where(x));
}

Expr sum_to_shape_of(const Expr& gradient, const Expr& like) {
  if (gradient.shape().is_fully_defined() && gradient.shape() == like.shape()) return gradient;
  return AnyOutput(build<SumToShape>({gradient, shape_of(like)}, {}, detail::built_where(like)));
}

}  // namespace dflow
