#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/segment.hpp>

namespace dflow {

void UnsortedSegmentSum::infer(InferContext& context) {
  const PartialShape &data = context.input(0), &ids = context.input(1);
  static_cast<void>(context.with_rank(2, 0));
  if (!data.has_rank() || !ids.has_rank()) return;
  if (ids.rank() > data.rank()) {
    context.fail(str_cat("the ids' shape ", ids.to_string(), " is not the first part of data's, ", data.to_string()));
  }
  for (int i = 0; i < ids.rank(); ++i) static_cast<void>(context.merge_dim(data[i], ids[i]));
  const AnyTensor* count = context.value(2);
  const PartialShape segments{count == nullptr ? dynamic : count->span<std::int32_t>()[0]};
  context.set_output(0, segments.concatenated(data.subshape(ids.rank(), data.rank())));
}

/// Each row's gradient is the gradient of its segment's sum; a row that was left out has none.
void UnsortedSegmentSum::gradient(GradientContext& context) {
  const Expr data = context.input(0), ids = context.input(1), dy = context.dy();
  const AnyOutput flat = detail::any_reshape(ids, {-1}, {});
  const AnyOutput zero = scalar_like(ids, 0.0);
  const AnyOutput rows = build<Gather>({dy, build<Maximum>({flat, zero})});
  const AnyOutput kept = build<Select>({build<GreaterEqual>({flat, zero}), rows, zeros_like(rows)});
  context.set_dx(0, ids.shape().rank() == 1 ? kept : build<Reshape>({kept, shape_of(data)}));
}

AnyOutput detail::scatter_rows(const AnyOutput& values, const AnyOutput& indices, const AnyOutput& dense_shape,
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
