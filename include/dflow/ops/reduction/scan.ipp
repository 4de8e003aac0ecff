#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/reduction/scan.hpp>

#include <optional>

namespace dflow {

void detail::infer_scan(InferContext& context) {
  const int axis_input = context.num_inputs() - 1;
  static_cast<void>(context.with_rank(axis_input, 0));
  PartialShape x = context.with_rank_at_least(0, 1);
  for (int i = 1; i < axis_input; ++i) x = context.merge(x, context.input(i));
  const std::optional<SmallIntegers> axis = known_integers(context, axis_input);
  if (axis && x.has_rank()) static_cast<void>(context.normalize_axis((*axis)[0], x.rank()));
  context.set_output(0, x);
}

void Cumsum::gradient(GradientContext& context) {
  ScanAttrs attrs = context.attrs<Cumsum>();
  attrs.reverse = !attrs.reverse;
  context.set_dx(0, build<Cumsum>({context.dy(), context.input(1)}, attrs));
}

/// Let p_i be the product of all elements before i. The exclusive products are p, and p_{j+1} = x_j p_j, so that the
/// gradient by x_i is p_i G_{i+1}, where G_i = dy_i + x_i G_{i+1} is a LinearScan from behind. The inclusive products
/// are x_i p_i, and the gradient is p_i (dy_i + x_{i+1} (dy_{i+1} + x_{i+2} (...))).
void Cumprod::gradient(GradientContext& context) {
  const auto& [exclusive, reverse] = context.attrs<Cumprod>();
  const Expr x = conj(context.input(0)), axis = context.input(1), dy = context.dy();
  const LinearScan::Attrs back{.reverse = !reverse};
  if (exclusive) return context.set_dx(0, conj(context.output(0)) * build<LinearScan>({x, dy, axis}, back));
  const Expr before = build<Cumprod>({x, axis}, {.exclusive = true, .reverse = reverse});
  context.set_dx(0, before * (dy + build<LinearScan>({x, x * dy, axis}, back)));
}

/// The gradient by y_{i+1}, what comes after it included, is that by b_i, and y_i times as much that by a_i.
void LinearScan::gradient(GradientContext& context) {
  const Expr a = context.input(0), axis = context.input(2);
  const Expr db = build<LinearScan>({conj(a), context.dy(), axis}, {.reverse = !context.attrs<LinearScan>().reverse});
  context.set_dx(0, db * conj(context.output(0)));
  context.set_dx(1, db);
}

}  // namespace dflow
