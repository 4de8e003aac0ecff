#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/expr.hpp>
#include <dflow/ops/math/segment.hpp>

namespace dflow {

DFLOW_INLINE void UnsortedSegmentSum::infer(InferContext& context) {
  const PartialShape data = context.with_rank_at_least(0, 1);
  const PartialShape ids = context.with_rank(1, 1);
  static_cast<void>(context.with_rank(2, 0));
  if (!data.has_rank()) return;
  static_cast<void>(context.merge_dim(data[0], ids[0]));
  const AnyTensor* count = context.value(2);
  context.set_output(0, data.with_dim(0, count == nullptr ? dynamic : count->span<std::int32_t>()[0]));
}

DFLOW_INLINE void UnsortedSegmentSum::gradient(GradientContext& context) {
  context.set_dx(0, build<Gather>({context.dy(), context.input(1)}));
}

DFLOW_INLINE AnyOutput detail::scatter_rows(const AnyOutput& values, const AnyOutput& indices, const AnyOutput& dense_shape,
                                            const PartialShape& known) {
  GraphStore& graph = *values.graph();
  AnyOutput rows;
  if (known.has_rank() && known[0] != dynamic) {
    rows = any_constant(graph, Tensor<std::int32_t>(narrow<std::int32_t>(known[0])), {});
  } else {
    rows = build<Gather>({dense_shape, any_constant(graph, Tensor<std::int32_t>(0), {})});
  }
  return build<UnsortedSegmentSum>({values, indices, rows});
}

}  // namespace dflow
