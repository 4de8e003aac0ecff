#pragma once

#include <dflow/ops/array/shape.hpp>

namespace dflow {

void ShapeOf::infer(InferContext& context) {
  const PartialShape& x = context.input(0);
  context.set_output(0, {x.has_rank() ? x.rank() : dynamic});
}

void RankOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

void SizeOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

}  // namespace dflow
