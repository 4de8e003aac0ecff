#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/block_shapes.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/nn/pool_argmax.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace dflow {

Pool2DAttrs detail::windows_of(const MaxPoolArgmaxAttrs& attrs) {
  return {.ksize = attrs.ksize, .strides = attrs.strides, .padding = attrs.padding};
}

void MaxPoolWithArgmax::infer(InferContext& context) {
  const Pool2DAttrs windows = detail::windows_of(context.attrs<MaxPoolWithArgmax>());
  const PartialShape output = detail::infer_pool2d(context, windows, context.with_rank(0, 4));
  context.set_output(0, output);
  context.set_output(1, output);
}

void MaxPoolWithArgmax::gradient(GradientContext& context) {
  const Pool2DAttrs windows = detail::windows_of(context.attrs<MaxPoolWithArgmax>());
  context.set_dx(0, build<MaxPoolGrad>({context.input(0), context.output(0), context.dy()}, windows));
}

AnyOutput detail::any_max_pool_grad_with_argmax(const AnyOutput& x, const AnyOutput& grad, const AnyOutput& argmax,
                                                bool include_batch_in_index, const At& at) {
  BlockShapes shapes("MaxPoolGradWithArgmax", x, at);
  const Composite place(graph_of(std::initializer_list<AnyOutput>{x, grad, argmax}, "MaxPoolGradWithArgmax", at),
                        at.where);
  if (!x.shape().has_rank() || x.shape().rank() != 4) shapes.fail("x must have the rank 4");
  const PartialShape images{x.shape()[0], dynamic, dynamic, x.shape()[3]};
  if (!grad.shape().is_compatible_with(argmax.shape()) || !grad.shape().is_compatible_with(images)) {
    shapes.fail(str_cat("grad has shape ", grad.shape().to_string(), ", argmax ", argmax.shape().to_string()));
  }
  const BlockDim one{.number = 1, .edge = {}}, batch = shapes.dim(0), image = shapes.all_of(1, 4);
  const BlockDim all = shapes.all_of(0, 4);
  constexpr std::string_view message = "MaxPoolGradWithArgmax: an index is outside of x";
  const AnyOutput size = cast_to(shapes.edge(include_batch_in_index ? all : image), DType::int64);
  AnyOutput ids = any_assert_sign(CheckedSign::non_negative, cast_to(argmax, DType::int64), message, {});
  ids = any_assert_relation(CheckedRelation::less, ids, size, message, {});
  if (!include_batch_in_index) {
    const Expr first = Expr(cast_to(counting(shapes.edge(batch)), DType::int64)) * Expr(size);
    ids = Expr(ids) + Expr(shapes.reshape(first, {batch, one, one, one}, {}));
  }
  const AnyOutput sums = build<UnsortedSegmentSum>({grad, ids, shapes.edge(all)});
  return shapes.reshape(sums, {shapes.dim(0), shapes.dim(1), shapes.dim(2), shapes.dim(3)}, at);
}

}  // namespace dflow
