#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/math/cast.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

bool has_bit(std::int64_t mask, int i) { return (mask >> i & 1) != 0; }

/// Positions along one dimension.
struct StridedRange {
  std::int64_t begin = 0, stride = 1, size = dynamic;
};

StridedRange position_along(std::int64_t extent, int axis, const std::int64_t* begin, const std::int64_t* stride) {
  if (stride != nullptr && *stride < 0) {
    throw_error(Status::invalid_argument(str_cat("the position in dimension ", axis, " has stride ", *stride)));
  }
  if (begin == nullptr || extent == dynamic) return {0, 1, 1};
  const std::int64_t first = *begin < 0 ? *begin + extent : *begin;
  if (first < 0 || first >= extent) {
    throw_error(Status::invalid_argument(
        str_cat("position ", *begin, " is outside of dimension ", axis, ", which has ", extent)));
  }
  return {first, 1, 1};
}

/// A null begin or end is unknown.
StridedRange range_along(std::int64_t extent, const std::int64_t* begin, bool is_begin_open, const std::int64_t* end,
                         bool is_end_open, const std::int64_t* stride) {
  const bool is_known = stride != nullptr && (begin != nullptr || is_begin_open) && (end != nullptr || is_end_open);
  if (!is_known || extent == dynamic) return {};
  const bool is_forward = *stride > 0;
  const std::int64_t low = is_forward ? 0 : -1, high = is_forward ? extent : extent - 1;
  const auto bound = [&](const std::int64_t* value, bool is_open, std::int64_t open) {
    return is_open ? open : std::clamp(*value < 0 ? *value + extent : *value, low, high);
  };
  const std::int64_t first = bound(begin, is_begin_open, is_forward ? low : high);
  const std::int64_t length = bound(end, is_end_open, is_forward ? high : low) - first;
  if (length == 0 || (length > 0) != is_forward) return {0, 1, 0};
  const std::int64_t size = length / *stride + (length % *stride != 0 ? 1 : 0);
  return {first, size == 1 ? 1 : *stride, size};
}

StridedBox strided_box(const PartialShape& x, int count, const StridedSliceBounds& bounds,
                       const StridedSliceAttrs& masks) {
  int ellipsis_at = count, num_named = 0;
  for (int i = 0; i < count; ++i) {
    if (has_bit(masks.ellipsis_mask, i)) {
      if (ellipsis_at < count) throw_error(Status::invalid_argument("a slice has one ellipsis at most"));
      ellipsis_at = i;
    } else if (!has_bit(masks.new_axis_mask, i)) {
      ++num_named;
    }
  }
  if (num_named > x.rank()) {
    throw_error(Status::invalid_argument(
        str_cat("the slice has ", num_named, " positions and ranges, and the tensor ", x.rank(), " dimensions")));
  }
  const auto entry = [](const std::optional<SmallIntegers>& all, int i) { return all ? all->begin() + i : nullptr; };
  StridedBox box;
  SmallIntegers dims;
  const auto append = [&box](const StridedRange& range) {
    box.begin.push_back(range.begin);
    box.stride.push_back(range.stride);
    box.size.push_back(range.size);
    return range.size;
  };
  const auto append_whole_dims = [&] {
    for (int left = x.rank() - num_named; left > 0; --left) dims.push_back(append({0, 1, x[box.size.size()]}));
  };
  for (int i = 0; i < count; ++i) {
    const int axis = box.size.size();
    const std::int64_t* const stride = entry(bounds.strides, i);
    if (i == ellipsis_at) {
      append_whole_dims();
    } else if (has_bit(masks.new_axis_mask, i)) {
      dims.push_back(1);
    } else if (stride != nullptr && *stride == 0) {
      throw_error(Status::invalid_argument(str_cat("strides[", i, "] is 0")));
    } else if (has_bit(masks.shrink_axis_mask, i)) {
      append(position_along(x[axis], axis, entry(bounds.begin, i), stride));
    } else {
      dims.push_back(append(range_along(x[axis], entry(bounds.begin, i), has_bit(masks.begin_mask, i),
                                        entry(bounds.end, i), has_bit(masks.end_mask, i), stride)));
    }
  }
  if (ellipsis_at == count) append_whole_dims();
  if (dims.size() > max_rank) {
    throw_error(Status::invalid_argument(str_cat("the slice has ", dims.size(), " dimensions, more than ", max_rank)));
  }
  box.shape = PartialShape(dims.span());
  return box;
}

std::optional<StridedBox> inferred_box(const InferContext& context, const PartialShape& x, int first,
                                       const StridedSliceAttrs& masks) {
  std::int64_t count = dynamic;
  for (int i = first; i < first + 3; ++i) count = context.merge_dim(count, context.with_rank(i, 1)[0]);
  if (count > SmallIntegers::max_size) {
    context.fail(
        str_cat("the slice has ", count, " entries, more than a tensor of up to ", max_rank, " dimensions needs"));
  }
  const StridedSliceBounds bounds{known_integers(context, first), known_integers(context, first + 1),
                                  known_integers(context, first + 2)};
  if (!x.has_rank() || count == dynamic) return std::nullopt;
  return strided_box(x, static_cast<int>(count), bounds, masks);
}

}  // namespace detail

void StridedSlice::infer(InferContext& context) {
  const auto box = detail::inferred_box(context, context.input(0), 1, context.attrs<StridedSlice>());
  if (box) context.set_output(0, box->shape);
}

void StridedSlice::gradient(GradientContext& context) {
  const Expr begin = context.input(1), shape = shape_of(context.input(0));
  AnyOutput dims = shape;
  if (begin.dtype() == DType::int64) {
    const auto known = detail::constant_integers(shape);
    dims =
        known ? IndexList(known->span()).edge(context.graph(), DType::int64, {}) : detail::cast_to(shape, DType::int64);
  }
  context.set_dx(0, build<StridedSliceGrad>({dims, begin, context.input(2), context.input(3), context.dy()},
                                            context.attrs<StridedSlice>()));
}

void StridedSliceGrad::infer(InferContext& context) {
  detail::infer_shape_argument(context);
  const PartialShape x = context.value_as_shape(0).value_or(PartialShape::unknown());
  const auto box = detail::inferred_box(context, x, 1, context.attrs<StridedSliceGrad>());
  if (box) static_cast<void>(context.merge(box->shape, context.input(4)));
}

/// The adjoint of putting a tensor in is reading it.
void StridedSliceGrad::gradient(GradientContext& context) {
  context.set_dx(4, build<StridedSlice>({context.dy(), context.input(1), context.input(2), context.input(3)},
                                        context.attrs<StridedSliceGrad>()));
}

namespace detail {

/// One of the vectors begin, end and strides: a constant, or a pack of scalars if one of them is an edge.
AnyOutput bounds_edge(GraphStore& graph, std::span<const SliceBound> bounds, DType dtype, const At& at) {
  const bool has_edges = std::ranges::any_of(bounds, [](const SliceBound& bound) { return bound.edge().is_valid(); });
  if (!has_edges) {
    std::vector<std::int64_t> numbers;
    for (const SliceBound& bound : bounds) numbers.push_back(bound.number());
    return IndexList(numbers).edge(graph, dtype, at);
  }
  std::vector<AnyOutput> scalars;
  for (const SliceBound& bound : bounds) {
    if (bound.edge().is_valid()) {
      scalars.push_back(cast_to(bound.edge(), dtype, at));
    } else if (dtype == DType::int64) {
      scalars.push_back(any_constant(graph, Tensor<std::int64_t>(bound.number()), at));
    } else {
      scalars.push_back(int32_constant(graph, static_cast<std::int32_t>(bound.number()), at));
    }
  }
  return build<Pack>(std::span<const AnyOutput>(scalars), {}, at);
}

StridedSliceInputs strided_slice_inputs(GraphStore& graph, std::span<const SliceIndex> indices, std::string_view op,
                                        const At& at) {
  if (indices.size() > static_cast<std::size_t>(SmallIntegers::max_size)) {
    throw_error(Status::invalid_argument(
                    str_cat("a slice has at most ", SmallIntegers::max_size, " indices, got ", indices.size()))
                    .with_node(op, at.name)
                    .with_location(at.where));
  }
  StridedSliceAttrs masks;
  std::vector<SliceBound> begin, end, strides;
  DType dtype = DType::int32;
  for (const SliceIndex& index : indices) {
    const std::int64_t bit = std::int64_t{1} << begin.size();
    const bool is_position = index.kind() == SliceIndex::Kind::position;
    const bool is_range = index.kind() == SliceIndex::Kind::range;
    const SliceRange& range = index.range();
    if (index.kind() == SliceIndex::Kind::others) masks.ellipsis_mask |= bit;
    if (index.kind() == SliceIndex::Kind::added) masks.new_axis_mask |= bit;
    if (is_position) masks.shrink_axis_mask |= bit;
    if (is_range && !range.begin.is_given()) masks.begin_mask |= bit;
    if (is_range && !range.end.is_given()) masks.end_mask |= bit;
    begin.push_back(range.begin);
    end.push_back(is_position ? range.begin : range.end);  // the end of a position is ignored
    strides.push_back(range.stride.is_given() ? range.stride : SliceBound(1));
    for (const SliceBound& bound : {range.begin, range.end, range.stride}) {
      const bool is_wide =
          bound.edge().is_valid() ? bound.edge().dtype() == DType::int64 : !std::in_range<std::int32_t>(bound.number());
      if (is_wide) dtype = DType::int64;
    }
  }
  const At here{.where = at.where};
  return {bounds_edge(graph, begin, dtype, here), bounds_edge(graph, end, dtype, here),
          bounds_edge(graph, strides, dtype, here), masks};
}

AnyOutput any_strided_slice(const AnyOutput& x, std::span<const SliceIndex> indices, const At& at) {
  const StridedSliceInputs slice =
      strided_slice_inputs(graph_of({&x, 1}, StridedSlice::name, at), indices, StridedSlice::name, at);
  return build<StridedSlice>({x, slice.begin, slice.end, slice.strides}, slice.masks, at);
}

AnyOutput any_strided_slice(const AnyOutput& x, const IndexList& begin, const IndexList& end, const IndexList& strides,
                            const StridedSliceAttrs& masks, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, StridedSlice::name, at);
  const bool is_wide = begin.dtype() == DType::int64 || end.dtype() == DType::int64 || strides.dtype() == DType::int64;
  const DType index = is_wide ? DType::int64 : DType::int32;
  const AnyOutput first = begin.edge(graph, index, at);
  AnyOutput steps;
  if (strides.is_given()) {
    steps = strides.edge(graph, index, at);
  } else if (first.shape().is_fully_defined() && first.shape().rank() == 1) {
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(first.shape()[0]), 1);
    steps = IndexList(ones).edge(graph, index, at);
  } else {
    steps = ones_like(first);
  }
  return build<StridedSlice>({x, first, end.edge(graph, index, at), steps}, masks, at);
}

}  // namespace detail

}  // namespace dflow
