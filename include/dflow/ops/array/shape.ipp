#pragma once

#include <dflow/ops/array/shape.hpp>

#include <string>

namespace dflow {

void ShapeOf::infer(InferContext& context) {
  const PartialShape& x = context.input(0);
  context.set_output(0, {x.has_rank() ? x.rank() : dynamic});
}

void RankOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

void SizeOf::infer(InferContext& context) { context.set_output(0, Shape{}); }

std::vector<Output<std::int32_t>> detail::shape_n(const std::vector<AnyOutput>& xs, const At& at) {
  std::vector<Output<std::int32_t>> shapes;
  for (const AnyOutput& x : xs) {
    const bool is_numbered = !at.name.empty() && !shapes.empty();
    const std::string name = is_numbered ? str_cat(at.name, "_", shapes.size()) : std::string(at.name);
    const AnyOutput shape = build<ShapeOf>({x}, {}, {.name = name, .where = at.where});
    shapes.push_back(Output<std::int32_t>::unchecked(shape));
  }
  return shapes;
}

}  // namespace dflow
