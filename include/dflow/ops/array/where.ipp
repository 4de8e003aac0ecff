#pragma once

#include <dflow/ops/array/where.hpp>

namespace dflow {

void Where::infer(InferContext& context) {
  const PartialShape& x = context.input(0);
  context.set_output(0, {dynamic, x.has_rank() ? x.rank() : dynamic});
}

}  // namespace dflow
