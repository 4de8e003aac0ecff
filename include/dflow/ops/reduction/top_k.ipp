#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/reduction/segment.hpp>
#include <dflow/ops/reduction/top_k.hpp>

#include <array>

namespace dflow {

void TopKV2::infer(InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 1);
  static_cast<void>(context.with_rank(1, 0));
  std::int64_t k = dynamic;
  if (const auto known = detail::known_integers(context, 1)) {
    k = (*known)[0];
    if (k < 0) context.fail(str_cat("k = ", k, " is negative"));
  }
  if (!x.has_rank()) return;
  const int axis = x.rank() - 1;
  if (k != dynamic && x[axis] != dynamic && k > x[axis]) {
    context.fail(str_cat("k = ", k, " is more than the ", x[axis], " elements of a row"));
  }
  const PartialShape result = x.with_dim(axis, k);
  context.set_output(0, result);
  context.set_output(1, result);
}

/// The elements that were taken have the gradients of the values, all others 0. No element is taken twice, so a sum of
/// segments of one element each is a scatter.
void TopKV2::gradient(GradientContext& context) {
  if (!context.has_dy(0)) return;
  const Expr x = context.input(0), k = context.input(1), indices = context.output(1);
  const AnyOutput flat = detail::any_reshape(indices, {-1}, {});
  AnyOutput ids = flat;
  if (x.shape().rank() != 1) {
    const auto vector = [&](std::int64_t value) {
      return detail::int32_constant(context.graph(), std::array<std::int64_t, 1>{value});
    };
    // The last extent: the position -1 of the shape.
    const Expr width =
        AnyOutput(build<StridedSlice>({shape_of(x), vector(-1), vector(0), vector(1)}, {.shrink_axis_mask = 1}));
    const Expr row = Expr(detail::counting(build<SizeOf>({flat}))) / k;
    ids = row * width + Expr(flat);
  }
  const AnyOutput dy = detail::any_reshape(context.dy(0), {-1}, {});
  const AnyOutput dx = build<UnsortedSegmentSum>({dy, ids, build<SizeOf>({x})});
  context.set_dx(0, x.shape().rank() == 1 ? dx : build<Reshape>({dx, shape_of(x)}));
}

void InTopK::infer(InferContext& context) {
  const PartialShape predictions = context.with_rank(0, 2), targets = context.with_rank(1, 1);
  const std::int64_t k = context.attrs<InTopK>().k;
  if (k < 0) context.fail(str_cat("k = ", k, " is negative"));
  context.set_output(0, PartialShape{context.merge_dim(predictions[0], targets[0])});
}

}  // namespace dflow
