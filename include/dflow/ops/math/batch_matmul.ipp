#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/batch_matmul.hpp>

namespace dflow {

void BatchMatMul::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<BatchMatMul>();
  const PartialShape x = context.with_rank_at_least(0, 2), y = context.with_rank_at_least(1, 2);
  if (!x.has_rank() || !y.has_rank()) return;
  if (x.rank() != y.rank()) context.fail("the operands have different ranks");
  const int batch = x.rank() - 2;
  const std::int64_t inner_x = x[attrs.adj_x ? batch : batch + 1], inner_y = y[attrs.adj_y ? batch + 1 : batch];
  if (inner_x != dynamic && inner_y != dynamic && inner_x != inner_y) {
    context.fail(str_cat("inner dimensions ", inner_x, " and ", inner_y, " differ"));
  }
  const PartialShape both = context.merge(x.subshape(0, batch), y.subshape(0, batch));
  context.set_output(0, both.appended(x[attrs.adj_x ? batch + 1 : batch]).appended(y[attrs.adj_y ? batch : batch + 1]));
}

/// z = op(x) op(y): dx = dz op(y)^H and dy = op(x)^H dz, transposed back where the operand was.
void BatchMatMul::gradient(GradientContext& context) {
  const auto [ax, ay] = context.attrs<BatchMatMul>();
  const Expr x = context.input(0), y = context.input(1), dz = context.dy();
  const auto product = [](const Expr& a, const Expr& b, bool adj_a, bool adj_b) -> AnyOutput {
    return build<BatchMatMul>({a, b}, {.adj_x = adj_a, .adj_y = adj_b});
  };
  context.set_dx(0, ax ? product(y, dz, ay, true) : product(dz, y, false, !ay));
  context.set_dx(1, ay ? product(dz, x, true, ax) : product(x, dz, !ax, false));
}

}  // namespace dflow
