#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/nn/conv3d.hpp>
#include <dflow/ops/nn/volume_shapes.hpp>

#include <vector>

namespace dflow::detail {

/// [5, 2], the paddings of a volume that has them at planes alone; before and after are scalars.
Expr paddings_of_planes(const Expr& before, const Expr& after) {
  Tensor<std::int32_t> front = Tensor<std::int32_t>::zeros({5, 2}), back = Tensor<std::int32_t>::zeros({5, 2});
  front(1, 0) = 1;
  back(1, 1) = 1;
  GraphStore& graph = *before.graph();
  return before * Expr(any_constant(graph, front, {})) + after * Expr(any_constant(graph, back, {}));
}

/// x with zeros around its planes, as many as windows of SAME need.
AnyOutput padded_planes(BlockShapes& shapes, const AnyOutput& x, std::int64_t window, std::int64_t stride) {
  const std::int64_t planes = x.shape()[1];
  if (planes != dynamic || stride == 1) {  // with a stride of 1 the padding is that of any number of planes
    const WindowPlaces places = window_places(planes == dynamic ? 1 : planes, window, stride, Padding::same);
    if (places.pad_before + places.pad_after == 0) return x;
    return any_pad(x, {{}, {places.pad_before, places.pad_after}, {}, {}, {}}, {});
  }
  const Expr count = shapes.edge(shapes.dim(1)), zero = scalar_like(count, 0);
  const auto step = static_cast<double>(stride);
  const Expr last = build<Maximum>({(count - 1.0) / step * step, zero});
  const Expr total = build<Maximum>({last + static_cast<double>(window) - count, zero});
  const Expr before = total / 2.0;
  return build<Pad>({x, paddings_of_planes(before, total - before)});
}

/// [0, window - 1], where the last plane of a filter meets a volume first. If the volume's planes are known to a step
/// alone, the step checks that there are enough.
IndexList first_of_last_plane(BlockShapes& shapes, const BlockDim& planes, std::int64_t window) {
  if (planes.number != dynamic) return {0, window - 1};
  const BlockDim zero{.number = 0, .edge = {}}, last{.number = window - 1, .edge = {}};
  const AnyOutput checked =
      any_assert_relation(CheckedRelation::less, shapes.edge(last), planes.edge,
                          str_cat("Conv3D: the filter's ", window, " planes do not fit into x without padding"), {});
  return Output<std::int32_t>::unchecked(build<Pack>({shapes.edge(zero), checked}));
}

/// x: [n, d, ...] gives [n, d', ..., planes of the filter * c]: the planes of each window as channels.
AnyOutput planes_of_windows(BlockShapes& shapes, const AnyOutput& x, std::int64_t window, std::int64_t stride) {
  if (window == 1 && stride == 1) return x;
  std::vector<AnyOutput> parts;
  parts.reserve(static_cast<std::size_t>(window));
  for (std::int64_t i = 0; i + 1 < window; ++i) {
    parts.push_back(
        any_strided_slice(x, {0, i}, {0, i + 1 - window}, {1, stride}, {.begin_mask = 1, .end_mask = 1}, {}));
  }
  parts.push_back(any_strided_slice(x, first_of_last_plane(shapes, shapes.dim(1), window), {0, 0}, {1, stride},
                                    {.begin_mask = 1, .end_mask = 3}, {}));
  return parts.size() == 1 ? parts[0] : any_concat(4, parts);
}

AnyOutput any_conv3d(const AnyOutput& x, const AnyOutput& filter, const Conv3DAttrs& attrs, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{x, filter}, "Conv3D", at);
  BlockShapes shapes("Conv3D", x, at), taps("Conv3D", filter, at);
  const Composite place(graph, at.where);
  const auto fail = [&](std::string_view what) {
    shapes.fail(str_cat(what, ", the filter has shape ", filter.shape().to_string()));
  };
  if (!x.shape().has_rank() || x.shape().rank() != 5) fail("x must have the rank 5");
  if (!filter.shape().has_rank() || filter.shape().rank() != 5) fail("the filter must have the rank 5");
  check_volume_window(shapes, "strides", attrs.strides, 3);
  const std::int64_t window = filter.shape()[0], stride = attrs.strides[1];
  if (window == dynamic || window == 0) fail("the filter must have a known number of planes");
  const std::int64_t in_channels = x.shape()[4], filter_channels = filter.shape()[3];
  if (in_channels != dynamic && filter_channels != dynamic && in_channels != filter_channels) {
    fail(str_cat("the input has ", in_channels, " channels, the filter is for ", filter_channels));
  }
  for (int i = 0; i < 3; ++i) {
    check_window_fits(shapes, volume_dimension[static_cast<std::size_t>(i)], x.shape()[i + 1], filter.shape()[i],
                      attrs.padding);
  }
  const bool is_same = attrs.padding == Padding::same;
  const AnyOutput padded = is_same ? padded_planes(shapes, x, window, stride) : x;
  BlockShapes volumes("Conv3D", padded, at);
  const AnyOutput planes = planes_of_windows(volumes, padded, window, stride);
  BlockShapes stack("Conv3D", planes, at);
  const BlockDim n = shapes.dim(0), d = stack.dim(1), k = taps.dim(4);
  const AnyOutput images = shapes.reshape(
      planes, {shapes.times(n, d), shapes.dim(2), shapes.dim(3), shapes.times(shapes.dim(4), window)}, {});
  const AnyOutput flat = taps.reshape(any_transpose(filter, {1, 2, 0, 3, 4}, {}),
                                      {taps.dim(1), taps.dim(2), taps.times(taps.dim(3), window), k}, {});
  const AnyOutput y =
      build<Conv2D>({images, flat}, {.strides = {1, attrs.strides[2], attrs.strides[3], 1}, .padding = attrs.padding});
  BlockShapes result("Conv3D", y, at);
  return shapes.reshape(y, {n, d, result.dim(1), result.dim(2), k}, at);
}

}  // namespace dflow::detail
