#pragma once

#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/strings/string_join.hpp>

#include <utility>
#include <vector>

namespace dflow {

void StringJoin::infer(InferContext& context) {
  if (context.num_inputs() == 0) context.fail("there is nothing to join");
  PartialShape shape = Shape{};
  bool may_have_rank = false;  // an input of unknown rank, which may be a scalar or not
  for (int i = 0; i < context.num_inputs(); ++i) {
    const PartialShape& input = context.input(i);
    may_have_rank |= !input.has_rank();
    if (!input.has_rank() || input.rank() == 0) continue;
    shape = shape.has_rank() && shape.rank() == 0 ? input : context.merge(shape, input);
  }
  if (may_have_rank && shape.rank() == 0) shape = PartialShape::unknown();
  context.set_output(0, shape);
}

void ReduceJoin::infer(InferContext& context) {
  detail::infer_reduction(context, {.keep_dims = context.attrs<ReduceJoin>().keep_dims});
}

Output<std::string> string_join(std::span<const Output<std::string>> inputs, std::string separator, const At& at) {
  const std::vector<AnyOutput> edges(inputs.begin(), inputs.end());
  return Output<std::string>::unchecked(
      build<StringJoin>(std::span<const AnyOutput>(edges),
                        {.N = static_cast<std::int64_t>(edges.size()), .separator = std::move(separator)}, at));
}

Output<std::string> reduce_join(const Output<std::string>& inputs, const IndexList& axes, ReduceJoin::Attrs attrs,
                                const At& at) {
  const AnyOutput edge = inputs;
  GraphStore& graph = detail::graph_of({&edge, 1}, ReduceJoin::name, at);
  return Output<std::string>::unchecked(
      build<ReduceJoin>({edge, axes.edge(graph, DType::int32, {.where = at.where})}, std::move(attrs), at));
}

}  // namespace dflow
