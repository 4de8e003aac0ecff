#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/nn/pool3d.hpp>
#include <dflow/ops/nn/volume_shapes.hpp>

#include <vector>

namespace dflow::detail {

/// x: [n, h, w, c], or x itself if the windows are single elements.
AnyOutput pooled(bool is_max, const AnyOutput& x, const Pool2DAttrs& attrs) {
  const std::vector<std::int64_t> ones(4, 1);
  if (attrs.ksize == ones && attrs.strides == ones) return x;
  return is_max ? AnyOutput(build<MaxPool>({x}, attrs)) : AnyOutput(build<AvgPool>({x}, attrs));
}

AnyOutput any_pool1d(bool is_max, const AnyOutput& x, const Pool1DAttrs& attrs, const At& at) {
  BlockShapes shapes(is_max ? "MaxPool1D" : "AvgPool1D", x, at);
  const Composite place(*x.graph(), at.where);
  if (!x.shape().has_rank() || x.shape().rank() != 3) shapes.fail("x must have the rank 3");
  check_volume_window(shapes, "ksize", {1, attrs.ksize, 1}, 1);
  check_volume_window(shapes, "strides", {1, attrs.strides, 1}, 1);
  check_window_fits(shapes, "elements", x.shape()[1], attrs.ksize, attrs.padding);
  const AnyOutput rows = any_expand_dims(x, 2, {});
  const AnyOutput y = pooled(
      is_max, rows, {.ksize = {1, attrs.ksize, 1, 1}, .strides = {1, attrs.strides, 1, 1}, .padding = attrs.padding});
  return build<Squeeze>({y}, {.squeeze_dims = {2}}, at);
}

/// A window's place among rows and columns does not depend on its planes. So its mean is that of the means of its
/// planes, each of equally many elements, and its first maximum lies in the first plane that has the largest maximum.
AnyOutput any_pool3d(bool is_max, const AnyOutput& x, const Pool3DAttrs& attrs, const At& at) {
  BlockShapes shapes(is_max ? "MaxPool3D" : "AvgPool3D", x, at);
  const Composite place(*x.graph(), at.where);
  if (!x.shape().has_rank() || x.shape().rank() != 5) shapes.fail("x must have the rank 5");
  const std::vector<std::int64_t>&window = attrs.ksize, &stride = attrs.strides;
  check_volume_window(shapes, "ksize", window, 3);
  check_volume_window(shapes, "strides", stride, 3);
  for (int i = 0; i < 3; ++i) {
    check_window_fits(shapes, volume_dimension[static_cast<std::size_t>(i)], x.shape()[i + 1],
                      window[static_cast<std::size_t>(i) + 1], attrs.padding);
  }
  const BlockDim n = shapes.dim(0), c = shapes.dim(4);
  const AnyOutput wide = is_max ? x : widened(x);
  const AnyOutput images = shapes.reshape(wide, {shapes.all_of(0, 2), shapes.dim(2), shapes.dim(3), c}, {});
  const AnyOutput small = pooled(
      is_max, images,
      {.ksize = {1, window[2], window[3], 1}, .strides = {1, stride[2], stride[3], 1}, .padding = attrs.padding});
  BlockShapes image(is_max ? "MaxPool3D" : "AvgPool3D", small, at);
  const BlockDim h = image.dim(1), w = image.dim(2);
  const AnyOutput planes = shapes.reshape(small, {n, shapes.dim(1), image.all_of(1, 3), c}, {});
  const AnyOutput y = pooled(
      is_max, planes, {.ksize = {1, window[1], 1, 1}, .strides = {1, stride[1], 1, 1}, .padding = attrs.padding});
  BlockShapes last(is_max ? "MaxPool3D" : "AvgPool3D", y, at);
  const bool is_cast = wide.dtype() != x.dtype();
  const AnyOutput volumes = shapes.reshape(y, {n, last.dim(1), h, w, c}, is_cast ? At{} : at);
  return is_cast ? cast_to(volumes, x.dtype(), at) : volumes;
}

}  // namespace dflow::detail
