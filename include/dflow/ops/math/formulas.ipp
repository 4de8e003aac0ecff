#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/math/formulas.hpp>
#include <dflow/ops/math/unary.hpp>

#include <initializer_list>

namespace dflow {

namespace detail {

AnyOutput quotient_of(const AnyOutput& x, DType dtype) {
  if (is_floating(dtype) || is_complex(dtype)) return x;
  return cast_to(x, size_of(dtype) <= 2 ? DType::float32 : DType::float64);
}

}  // namespace detail

AnyOutput detail::any_truediv(const AnyOutput& x, const AnyOutput& y, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{x, y}, "truediv", at);
  const Composite place(graph, at.where);
  return build<Div>({quotient_of(x, x.dtype()), quotient_of(y, x.dtype())}, {}, at);
}

AnyOutput detail::any_floordiv(const AnyOutput& x, const AnyOutput& y, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{x, y}, "floordiv", at);
  const Composite place(graph, at.where);
  if (is_floating(x.dtype())) return build<Floor>({build<Div>({x, y})}, {}, at);
  const Expr rest = build<Mod>({x, y}), zero = scalar_like(x, 0);
  const AnyOutput is_rest = build<NotEqual>({rest, zero});
  const AnyOutput unlike = build<NotEqual>({build<Less>({rest, zero}), build<Less>({y, zero})});
  const AnyOutput is_rounded_up = build<LogicalAnd>({is_rest, unlike});
  return build<Sub>({build<Div>({x, y}), cast_to(is_rounded_up, x.dtype())}, {}, at);
}

AnyOutput detail::any_sparse_matmul(const AnyOutput& a, const AnyOutput& b, const SparseMatMulAttrs& attrs,
                                    const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{a, b}, "SparseMatMul", at);
  const Composite place(graph, at.where);
  return build<MatMul>({widened(a), widened(b)}, {.transpose_a = attrs.transpose_a, .transpose_b = attrs.transpose_b},
                       at);
}

AnyOutput detail::cast_between(const AnyOutput& x, const AnyTensor& low, const AnyTensor& high, DType to,
                               const At& at) {
  GraphStore& graph = graph_of({&x, 1}, "saturate_cast", at);
  const Composite place(graph, at.where);
  const AnyOutput wide = cast_to(x, low.dtype());
  const AnyOutput above = build<Maximum>({wide, any_constant(graph, low, {})});
  return cast_to(build<Minimum>({above, any_constant(graph, high, {})}), to, at);
}

}  // namespace dflow
