#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/math/cast.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace dflow {

namespace detail {

/// Extent `i` of the slice as far as it follows from its dimension, begin and size. Any of the three may be unknown.
std::int64_t sliced_dim(const InferContext& context, int i, std::int64_t dim, const std::optional<SmallIntegers>& begin,
                        const std::optional<SmallIntegers>& size) {
  const std::int64_t wanted = size ? (*size)[i] : dynamic;
  if (wanted < -1) context.fail(str_cat("size[", i, "] = ", wanted, " is below -1"));
  if (!begin) return wanted;
  const std::int64_t first = (*begin)[i];
  if (first < 0) context.fail(str_cat("begin[", i, "] = ", first, " is negative"));
  if (dim == dynamic) return wanted;
  if (first > dim || wanted > dim - first) {
    context.fail(
        str_cat("begin[", i, "] = ", first, " and size[", i, "] = ", wanted, " reach past dimension ", i, " of ", dim));
  }
  return size && wanted == -1 ? dim - first : wanted;
}

/// x, an integer vector, in the int32 that shapes are.
Expr as_int32(const AnyOutput& x) { return x.dtype() == DType::int32 ? x : cast_to(x, DType::int32); }

}  // namespace detail

void Slice::infer(InferContext& context) {
  const std::int64_t rank = context.merge_dim(context.with_rank(1, 1)[0], context.with_rank(2, 1)[0]);
  PartialShape x = context.input(0);
  if (rank > max_rank) context.fail(str_cat("begin has ", rank, " entries, more than a tensor has dimensions"));
  if (rank != dynamic) x = context.with_rank(0, static_cast<int>(rank));
  if (!x.has_rank()) return;
  static_cast<void>(context.merge_dim(rank, x.rank()));
  const std::optional<detail::SmallIntegers> begin = detail::known_integers(context, 1);
  std::optional<detail::SmallIntegers> size = detail::known_integers(context, 2);
  detail::SmallIntegers dims;
  for (int i = 0; i < x.rank(); ++i) dims.push_back(detail::sliced_dim(context, i, x[i], begin, size));
  PartialShape shape(dims.span());
  if (const std::optional<PartialShape> known = context.value_as_shape(2); known && !size)
    shape = context.merge(shape, *known);
  context.set_output(0, shape);
}

/// dx is dy padded up to the shape of x.
void Slice::gradient(GradientContext& context) {
  const Expr x = context.input(0), y = context.output(0), begin = context.input(1), dy = context.dy();
  const std::optional<detail::SmallIntegers> known = detail::constant_integers(begin);
  if (known && x.shape().is_fully_defined() && y.shape().is_fully_defined()) {
    const int rank = x.shape().rank();
    Tensor<std::int64_t> paddings({rank, 2});
    for (int i = 0; i < rank; ++i) {
      paddings(i, 0) = (*known)[i];
      paddings(i, 1) = x.shape()[i] - y.shape()[i] - (*known)[i];
    }
    return context.set_dx(0, build<Pad>({dy, detail::any_constant(context.graph(), paddings, {})}));
  }
  const Expr before = detail::as_int32(begin), after = shape_of(x) - shape_of(y) - before;
  const std::vector<AnyOutput> columns{detail::any_reshape(before, {-1, 1}, {}),
                                       detail::any_reshape(after, {-1, 1}, {})};
  context.set_dx(0, build<Pad>({dy, detail::any_concat(1, columns)}));
}

void Pad::infer(InferContext& context) {
  const PartialShape paddings = context.with_rank(1, 2);
  static_cast<void>(context.merge_dim(paddings[1], 2));
  if (paddings[0] > max_rank)
    context.fail(str_cat("paddings has ", paddings[0], " rows, more than a tensor has dimensions"));
  PartialShape x = context.input(0);
  if (paddings[0] != dynamic) x = context.with_rank(0, static_cast<int>(paddings[0]));
  if (!x.has_rank()) return;
  static_cast<void>(context.merge_dim(paddings[0], x.rank()));
  const std::optional<detail::SmallIntegers> widths = detail::known_integers(context, 1);
  if (!widths) return context.set_output(0, PartialShape::unknown(x.rank()));
  detail::SmallIntegers dims;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t before = (*widths)[2 * i], after = (*widths)[2 * i + 1];
    if (before < 0 || after < 0) context.fail(str_cat("paddings[", i, "] = [", before, ", ", after, "] is negative"));
    const std::optional<std::int64_t> both = try_add(before, after);
    const std::optional<std::int64_t> sum = both ? try_add(*both, std::max<std::int64_t>(x[i], 0)) : std::nullopt;
    if (!sum) context.fail(str_cat("dimension ", i, " becomes too large to be counted"));
    dims.push_back(x[i] == dynamic ? dynamic : *sum);
  }
  context.set_output(0, PartialShape(dims.span()));
}

/// dx is the part of dy that x fills.
void Pad::gradient(GradientContext& context) {
  const Expr x = context.input(0), dy = context.dy();
  GraphStore& graph = context.graph();
  if (const std::optional<detail::SmallIntegers> widths = detail::constant_integers(context.input(1))) {
    detail::SmallIntegers begin;
    for (int i = 0; i < widths->size() / 2; ++i) begin.push_back((*widths)[2 * i]);
    return context.set_dx(0, build<Slice>({dy, detail::int32_constant(graph, begin.span()), shape_of(x)}));
  }
  const Expr paddings = detail::as_int32(context.input(1));
  const AnyOutput before = detail::any_slice(paddings, {0, 0}, {-1, 1}, {});
  context.set_dx(0, build<Slice>({dy, detail::any_reshape(before, {-1}, {}), shape_of(x)}));
}

AnyOutput detail::any_slice(const AnyOutput& x, const IndexList& begin, const IndexList& size, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, Slice::name, at);
  const bool is_wide = begin.dtype() == DType::int64 || size.dtype() == DType::int64;
  const DType index = is_wide ? DType::int64 : DType::int32;
  return build<Slice>({x, begin.edge(graph, index, at), size.edge(graph, index, at)}, {}, at);
}

AnyOutput detail::any_pad(const AnyOutput& x, std::initializer_list<PadWidth> paddings, const At& at) {
  Tensor<std::int64_t> widths({static_cast<std::int64_t>(paddings.size()), 2});
  std::int64_t* to = widths.data();
  for (const PadWidth& width : paddings) {
    *to++ = width.before;
    *to++ = width.after;
  }
  GraphStore& graph = graph_of({&x, 1}, Pad::name, at);
  return build<Pad>({x, any_constant(graph, widths, {.where = at.where})}, {}, at);
}

}  // namespace dflow
