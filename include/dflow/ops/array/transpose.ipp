#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/transpose.hpp>

#include <optional>

namespace dflow {

void Transpose::infer(InferContext& context) {
  const PartialShape perm = context.with_rank(1, 1);
  if (perm[0] > max_rank) context.fail(str_cat("perm has ", perm[0], " entries, more than a tensor has dimensions"));
  PartialShape x = context.input(0);
  if (perm[0] != dynamic) x = context.with_rank(0, static_cast<int>(perm[0]));
  if (!x.has_rank()) return;
  static_cast<void>(context.merge_dim(perm[0], x.rank()));
  const std::optional<detail::SmallIntegers> order = detail::known_integers(context, 1);
  if (!order) return context.set_output(0, PartialShape::unknown(x.rank()));
  std::uint32_t seen = 0;
  detail::SmallIntegers dims;
  for (const std::int64_t axis : *order) {
    if (axis < 0 || axis >= x.rank()) context.fail(str_cat("perm names dimension ", axis, " of ", x.rank()));
    if ((seen >> axis & 1u) != 0) context.fail(str_cat("perm repeats dimension ", axis));
    seen |= 1u << axis;
    dims.push_back(x[static_cast<int>(axis)]);
  }
  context.set_output(0, PartialShape(dims.span()));
}

void Transpose::gradient(GradientContext& context) {
  const Expr perm = context.input(1);
  if (const std::optional<detail::SmallIntegers> order = detail::constant_integers(perm)) {
    detail::SmallIntegers inverse = *order;
    for (int i = 0; i < order->size(); ++i) inverse[static_cast<int>((*order)[i])] = i;
    return context.set_dx(0, detail::any_transpose(context.dy(), inverse.span(), {}));
  }
  context.set_dx(0, build<Transpose>({context.dy(), build<InvertPermutation>({perm})}));
}

void InvertPermutation::infer(InferContext& context) { context.set_output(0, context.with_rank(0, 1)); }

AnyOutput detail::any_transpose(const AnyOutput& x, const IndexList& perm, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, Transpose::name, at);
  if (perm.is_given()) return build<Transpose>({x, perm.edge(graph, at)}, {}, at);
  const At here{.where = at.where};
  if (x.shape().has_rank()) {
    SmallIntegers reversed;
    for (int i = x.shape().rank(); i-- > 0;) reversed.push_back(i);
    return build<Transpose>({x, int32_constant(graph, reversed.span(), here)}, {}, at);
  }
  const Expr last = Expr(AnyOutput(build<RankOf>({x}, {}, here))) - 1.0;
  const AnyOutput minus_one = int32_constant(graph, -1, here);
  return build<Transpose>({x, build<Range>({last, minus_one, minus_one}, {}, here)}, {}, at);
}

}  // namespace dflow
