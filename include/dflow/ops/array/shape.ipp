#pragma once

#include <dflow/ops/array/shape.hpp>

namespace dflow {

DFLOW_INLINE void ShapeOf::infer(InferContext& context) {
  const PartialShape& x = context.input(0);
  context.set_output(0, {x.has_rank() ? x.rank() : dynamic});
}

DFLOW_INLINE void RankOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

DFLOW_INLINE void SizeOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

}  // namespace dflow
