#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/nn/convolutions.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::detail {

[[noreturn]] void refuse_convolution(std::string_view builder, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message)).with_node(builder, "").with_location(at.where));
}

AnyOutput any_conv1d(const std::array<AnyOutput, 2>& edges, const Conv1DOptions& options, const At& at) {
  GraphStore& graph = graph_of(edges, "conv1d", at);
  const PartialShape x = edges[0].shape(), filter = edges[1].shape();
  if ((x.has_rank() && x.rank() != 3) || (filter.has_rank() && filter.rank() != 3)) {
    refuse_convolution(
        "conv1d",
        str_cat("the input and the filter must have rank 3, got shapes ", x.to_string(), " and ", filter.to_string()),
        at);
  }
  const Composite place(graph, at.where);
  const At here{.where = at.where};
  const AnyOutput y = build<Conv2D>(
      {any_expand_dims(edges[0], 1, here), any_expand_dims(edges[1], 0, here)},
      {.strides = {1, 1, options.stride, 1}, .padding = options.padding, .dilations = {1, 1, options.dilation, 1}},
      here);
  return build<Squeeze>({y}, {.squeeze_dims = {1}}, at);
}

AnyOutput any_separable_conv2d(const std::array<AnyOutput, 3>& edges, Conv2DAttrs attrs, const At& at) {
  GraphStore& graph = graph_of(edges, "separable_conv2d", at);
  const Composite place(graph, at.where);
  const AnyOutput y = build<DepthwiseConv2dNative>({edges[0], edges[1]}, std::move(attrs), {.where = at.where});
  const PartialShape pointwise = edges[2].shape();
  const std::int64_t channels = y.shape()[3];
  if (!pointwise.is_compatible_with({1, 1, channels, dynamic})) {
    refuse_convolution("separable_conv2d",
                       str_cat("the pointwise filter must be [1,1,", channels == dynamic ? "?" : str_cat(channels),
                               ",?], got shape ", pointwise.to_string()),
                       at);
  }
  return build<Conv2D>({y, edges[2]}, {}, at);
}

/// Whether the op takes the attributes. If not, its error says so.
bool are_positive(const Conv2DAttrs& attrs) {
  const auto is_small = [](std::int64_t value) { return value > 0 && value < std::int64_t{1} << 31; };
  return attrs.strides.size() == 4 && attrs.dilations.size() == 4 && std::ranges::all_of(attrs.strides, is_small) &&
         std::ranges::all_of(attrs.dilations, is_small);
}

/// The rows or columns that a transposed convolution gives; `dynamic` if those of x or of the window are.
std::int64_t transposed_extent(std::int64_t in, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                               Padding padding) {
  if (in == dynamic || in > (std::int64_t{1} << 31)) return dynamic;
  if (padding == Padding::same) return in * stride;
  if (window == dynamic || window < 1 || window > (std::int64_t{1} << 31)) return dynamic;
  return in * stride + std::max<std::int64_t>(0, dilated(window, dilation) - stride);
}

/// The shape that a transposed convolution has if none is given.
PartialShape transposed_shape(const PartialShape& x, const PartialShape& filter, const Conv2DAttrs& attrs) {
  const auto extent = [&](int i, std::size_t dim) {
    return transposed_extent(x[i], filter[i - 1], attrs.strides[dim], attrs.dilations[dim], attrs.padding);
  };
  return {x[0], extent(1, 1), extent(2, 2), filter[2]};
}

/// The same as an edge, for shapes that the step knows.
AnyOutput transposed_sizes(const AnyOutput& x, const AnyOutput& filter, const Conv2DAttrs& attrs) {
  GraphStore& graph = *x.graph();
  const auto two = [&](const std::vector<std::int64_t>& values) {
    return Expr(int32_constant(graph, std::vector<std::int64_t>{values[1], values[2]}, {}));
  };
  const Expr shape = shape_of(x), window = shape_of(filter), strides = two(attrs.strides);
  Expr extents = Expr(any_slice(shape, 1, 2, {})) * strides;
  if (attrs.padding == Padding::valid) {
    const Expr reach = (Expr(any_slice(window, 0, 2, {})) - 1) * two(attrs.dilations) + 1;
    const Expr more = reach - strides;
    extents = extents + Expr(build<Maximum>({more, zeros_like(more)}));
  }
  return any_concat(0, std::array<AnyOutput, 3>{any_slice(shape, 0, 1, {}), extents, any_slice(window, 2, 1, {})});
}

AnyOutput any_conv2d_transpose(const std::array<AnyOutput, 2>& edges, const IndexList& output_shape, Conv2DAttrs attrs,
                               const At& at) {
  GraphStore& graph = graph_of(edges, "conv2d_transpose", at);
  const Composite place(graph, at.where);
  const AnyOutput &x = edges[0], &filter = edges[1];
  const auto has_rank_4 = [](const AnyOutput& edge) { return !edge.shape().has_rank() || edge.shape().rank() == 4; };
  if (output_shape.is_given() || !are_positive(attrs) || !has_rank_4(x) || !has_rank_4(filter)) {
    const AnyOutput sizes =
        output_shape.is_given() ? cast_to(output_shape.edge(graph, at), DType::int32) : AnyOutput(shape_of(x));
    return build<Conv2DBackpropInput>({sizes, filter, x}, std::move(attrs), at);
  }
  const PartialShape known = x.shape().has_rank() && filter.shape().has_rank()
                                 ? transposed_shape(x.shape(), filter.shape(), attrs)
                                 : PartialShape::unknown(4);
  if (known.is_fully_defined()) {
    const AnyOutput sizes = int32_constant(graph, known.dims(), {});
    return build<Conv2DBackpropInput>({sizes, filter, x}, std::move(attrs), at);
  }
  const AnyOutput sizes = transposed_sizes(x, filter, attrs);
  return build<EnsureShape>({build<Conv2DBackpropInput>({sizes, filter, x}, std::move(attrs))}, {.shape = known}, at);
}

}  // namespace dflow::detail
