#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/slice.hpp>

#include <optional>
#include <vector>

namespace dflow {

namespace detail {

/// The axis on scalar input 0, made non-negative, if it is known.
std::optional<int> known_axis(const InferContext& context, int rank) {
  const std::optional<SmallIntegers> value = known_integers(context, 0);
  if (!value) return std::nullopt;
  return context.normalize_axis((*value)[0], rank);
}

/// The common shape of inputs [first, last), leaving out dimension `skipped` (-1: none).
PartialShape merged_inputs(const InferContext& context, int first, int skipped) {
  PartialShape merged = PartialShape::unknown();
  for (int i = first; i < context.num_inputs(); ++i) {
    const PartialShape& x = context.input(i);
    if (!x.has_rank()) continue;
    if (merged.has_rank() && merged.rank() != x.rank()) {
      context.fail(str_cat("the values have different ranks: ", merged.to_string(), " and ", x.to_string()));
    }
    const bool skips = skipped >= 0 && skipped < x.rank();
    merged = context.merge(merged, skips ? x.with_dim(skipped, dynamic) : x);
  }
  return merged;
}

int rank_of_inputs(const InferContext& context, int first) {
  int rank = -1;
  for (int i = first; i < context.num_inputs(); ++i) {
    const PartialShape& x = context.input(i);
    if (!x.has_rank()) continue;
    if (rank >= 0 && x.rank() != rank) {
      context.fail(str_cat("the values have different ranks, ", rank, " and ", x.rank()));
    }
    rank = x.rank();
  }
  return rank;
}

std::vector<AnyOutput> outputs_of(const BuiltNode& node, std::int64_t count) {
  std::vector<AnyOutput> outputs;
  outputs.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < static_cast<int>(count); ++i) outputs.push_back(node.output(i));
  return outputs;
}

std::vector<AnyOutput> all_dy(const GradientContext& context) {
  std::vector<AnyOutput> edges;
  edges.reserve(static_cast<std::size_t>(context.num_outputs()));
  for (int i = 0; i < context.num_outputs(); ++i) edges.push_back(context.dy(i));
  return edges;
}

}  // namespace detail

void Concat::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  if (context.num_inputs() < 2) context.fail("needs at least one value");
  const int rank = detail::rank_of_inputs(context, 1);
  if (rank < 0) return;
  if (rank == 0) context.fail("scalars cannot be concatenated; pack makes them a vector");
  const std::optional<int> axis = detail::known_axis(context, rank);
  if (!axis) return context.set_output(0, PartialShape::unknown(rank));
  std::int64_t sum = 0;
  for (int i = 1; i < context.num_inputs(); ++i) {
    const std::int64_t dim = context.input(i).dim(context.input(i).has_rank() ? *axis : 0);
    if (sum != dynamic) sum = dim == dynamic ? dynamic : try_add(sum, dim).value_or(-2);
    if (sum == -2) context.fail("the result is too large to be counted");
  }
  context.set_output(0, detail::merged_inputs(context, 1, *axis).with_dim(*axis, sum));
}

/// dx of a value is the slice of dy where it went.
void Concat::gradient(GradientContext& context) {
  const Expr dy = context.dy();
  GraphStore& graph = context.graph();
  const int count = context.num_inputs() - 1;
  if (count == 1) return context.set_dx(1, dy);
  bool is_static = true;
  for (int i = 1; i <= count; ++i) is_static = is_static && context.input(i).shape().is_fully_defined();
  const std::optional<detail::SmallIntegers> axis = detail::constant_integers(context.input(0));
  if (is_static && axis) {
    const int rank = context.input(1).shape().rank();
    const int along = static_cast<int>((*axis)[0] < 0 ? (*axis)[0] + rank : (*axis)[0]);
    detail::SmallIntegers begin;
    for (int i = 0; i < rank; ++i) begin.push_back(0);
    for (int i = 1; i <= count; ++i) {
      const PartialShape& shape = context.input(i).shape();
      context.set_dx(i, build<Slice>({dy, detail::int32_constant(graph, begin.span()),
                                      detail::int32_constant(graph, shape.dims())}));
      begin[along] += shape[along];
    }
    return;
  }
  std::vector<AnyOutput> inputs{context.input(0)};
  for (int i = 1; i <= count; ++i) inputs.push_back(shape_of(context.input(i)));
  const BuiltNode offsets = build<ConcatOffset>(std::span<const AnyOutput>(inputs), {.count = count});
  for (int i = 1; i <= count; ++i) {
    context.set_dx(i, build<Slice>({dy, offsets.output(i - 1), inputs[static_cast<std::size_t>(i)]}));
  }
}

void ConcatOffset::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  if (context.num_outputs() < 1) context.fail("needs at least one shape");
  if (context.num_outputs() + 1 != context.num_inputs()) context.fail("needs as many shapes as it has outputs");
  PartialShape shape = PartialShape::unknown(1);
  for (int i = 1; i < context.num_inputs(); ++i) shape = context.merge(shape, context.with_rank(i, 1));
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shape);
}

void Split::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  const std::int64_t count = context.attrs<Split>().num_split;
  if (count < 1) context.fail(str_cat("cannot split into ", count, " parts"));
  const PartialShape& value = context.input(1);
  if (!value.has_rank()) return;
  if (value.rank() == 0) context.fail("a scalar cannot be split");
  PartialShape part = PartialShape::unknown(value.rank());
  if (const std::optional<int> axis = detail::known_axis(context, value.rank())) {
    const std::int64_t dim = value[*axis];
    if (dim != dynamic && dim % count != 0) {
      context.fail(str_cat("dimension ", *axis, " of ", dim, " does not divide into ", count, " equal parts"));
    }
    part = value.with_dim(*axis, dim == dynamic ? dynamic : dim / count);
  }
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, part);
}

void Split::gradient(GradientContext& context) {
  std::vector<AnyOutput> inputs = detail::all_dy(context);
  inputs.insert(inputs.begin(), context.input(0));
  context.set_dx(1, build<Concat>(std::span<const AnyOutput>(inputs)));
}

void Pack::infer(InferContext& context) {
  if (context.num_inputs() < 1) context.fail("needs at least one value");
  const PartialShape part = detail::merged_inputs(context, 0, -1);
  if (!part.has_rank()) return;
  if (part.rank() == max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  const int axis = context.normalize_axis(context.attrs<Pack>().axis, part.rank() + 1);
  context.set_output(0, part.inserted(axis, context.num_inputs()));
}

void Pack::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<Pack>();
  const std::vector<AnyOutput> parts = detail::any_unpack(context.dy(), context.num_inputs(), attrs.axis);
  for (int i = 0; i < context.num_inputs(); ++i) context.set_dx(i, parts[static_cast<std::size_t>(i)]);
}

void Unpack::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<Unpack>();
  if (attrs.num < 0) context.fail(str_cat("cannot unpack into ", attrs.num, " parts"));
  const PartialShape& value = context.input(0);
  if (!value.has_rank()) return;
  if (value.rank() == 0) context.fail("a scalar cannot be unpacked");
  const int axis = context.normalize_axis(attrs.axis, value.rank());
  if (value[axis] != dynamic && value[axis] != attrs.num) {
    context.fail(str_cat("dimension ", axis, " is ", value[axis], ", not num = ", attrs.num));
  }
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, value.erased(axis));
}

void Unpack::gradient(GradientContext& context) {
  const std::vector<AnyOutput> parts = detail::all_dy(context);
  context.set_dx(0, build<Pack>(std::span<const AnyOutput>(parts), {.axis = context.attrs<Unpack>().axis}));
}

AnyOutput detail::any_concat(std::int32_t axis, std::span<const AnyOutput> values, const At& at) {
  GraphStore& graph = graph_of(values, Concat::name, at);
  std::vector<AnyOutput> inputs{int32_constant(graph, axis, {.where = at.where})};
  inputs.insert(inputs.end(), values.begin(), values.end());
  return build<Concat>(std::span<const AnyOutput>(inputs), {}, at);
}

std::vector<AnyOutput> detail::any_split(std::int32_t axis, std::int64_t count, const AnyOutput& x, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, Split::name, at);
  const AnyOutput dim = int32_constant(graph, axis, {.where = at.where});
  return outputs_of(build<Split>({dim, x}, {.num_split = count}, at), count);
}

std::vector<AnyOutput> detail::any_unpack(const AnyOutput& x, std::int64_t num, std::int64_t axis, const At& at) {
  return outputs_of(build<Unpack>({x}, {.num = num, .axis = axis}, at), num);
}

}  // namespace dflow
