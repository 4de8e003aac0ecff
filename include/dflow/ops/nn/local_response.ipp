#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/block_shapes.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/local_response.hpp>
#include <dflow/ops/nn/pool2d.hpp>

#include <vector>

namespace dflow::detail {

/// The numbers of elements in windows of `radius` to either side, of the positions 0, 1, ..., count - 1; count is a
/// scalar of int32.
Expr window_counts(const AnyOutput& count, std::int64_t radius, DType dtype) {
  const Expr end = cast_to(count, dtype), i = cast_to(counting(count), dtype);
  const Expr most = scalar_like(end, static_cast<double>(radius));
  const Expr before = build<Minimum>({i, most}), after = build<Minimum>({end - 1.0 - i, most});
  return before + after + 1.0;
}

/// x: [rows, channels] gives the sums over windows of channels. The transpose has the channels as rows of an image, so
/// that pooling goes through many rows of x at once.
AnyOutput channel_sums(BlockShapes& shapes, const AnyOutput& x, const BlockDim& rows, const BlockDim& channels,
                       const AnyOutput& num_channels, std::int64_t radius) {
  const BlockDim one{.number = 1, .edge = {}};
  const AnyOutput image = shapes.reshape(any_transpose(x, {1, 0}, {}), {one, channels, one, rows}, {});
  const Pool2DAttrs windows{.ksize = {1, 2 * radius + 1, 1, 1}, .padding = Padding::same};
  const Expr means = shapes.reshape(build<AvgPool>({image}, windows), {channels, rows}, {});
  const Expr counts = shapes.reshape(window_counts(num_channels, radius, x.dtype()), {channels, one}, {});
  return any_transpose(means * counts, {1, 0}, {});
}

AnyOutput any_local_response(const AnyOutput& x, const LocalResponseAttrs& attrs, const At& at) {
  BlockShapes shapes("LRN", x, at);
  const Composite place(*x.graph(), at.where);
  if (!x.shape().has_rank() || x.shape().rank() == 0) shapes.fail("x must have a known rank of 1 or more");
  if (attrs.depth_radius < 0 || attrs.depth_radius >= std::int64_t{1} << 30) {
    shapes.fail(str_cat("depth_radius must be in [0, 2^30), got ", attrs.depth_radius));
  }
  const int last = x.shape().rank() - 1;
  const BlockDim rows = shapes.all_of(0, last), channels = shapes.dim(last);
  std::vector<BlockDim> all;
  for (int i = 0; i <= last; ++i) all.push_back(shapes.dim(i));
  const Expr wide = widened(x);
  const AnyOutput squares = shapes.reshape(build<Square>({wide}), {rows, channels}, {});
  const Expr sums = channel_sums(shapes, squares, rows, channels, shapes.edge(channels), attrs.depth_radius);
  const Expr base = shapes.reshape(sums * attrs.alpha + attrs.bias, all, {});
  const Expr y = attrs.beta == 0.5   ? wide * Expr(build<Rsqrt>({base}))
                 : attrs.beta == 1.0 ? wide / base
                                     : wide * Expr(build<Pow>({base, scalar_like(base, -attrs.beta)}));
  return cast_or_name(y, x.dtype(), at);
}

}  // namespace dflow::detail
