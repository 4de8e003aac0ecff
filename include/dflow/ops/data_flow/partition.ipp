#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/where.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string>

namespace dflow {

namespace detail {

/// The row... of input `data`, [n..., row...], where input `positions` is [n...]; of unknown rank if one of them is.
PartialShape infer_row(const InferContext& context, int positions, int data) {
  const PartialShape &prefix = context.input(positions), &all = context.input(data);
  if (!prefix.has_rank() || !all.has_rank()) return PartialShape::unknown();
  if (prefix.rank() > all.rank()) {
    context.fail(str_cat("shape ", prefix.to_string(), " of input ", positions,
                         " is not the first part of that of input ", data, ", ", all.to_string()));
  }
  for (int i = 0; i < prefix.rank(); ++i) static_cast<void>(context.merge_dim(prefix[i], all[i]));
  const PartialShape row = all.subshape(prefix.rank(), all.rank());
  if (row.rank() == max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  return row;
}

/// The number of rows that each partition gets; fails for a partition that does not exist.
std::vector<std::int64_t> count_rows(const InferContext& context, const AnyTensor& partitions) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(context.num_outputs()));
  std::int64_t position = 0;
  for (const std::int32_t partition : partitions.span<std::int32_t>()) {
    if (partition < 0 || partition >= context.num_outputs()) {
      context.fail(str_cat("partitions", index_to_string(position, partitions.shape()), " = ", partition,
                           " is outside [0, ", context.num_outputs(), "), the number of partitions"));
    }
    ++counts[static_cast<std::size_t>(partition)];
    ++position;
  }
  return counts;
}

/// One more than the largest index of input `i`.
std::int64_t rows_needed(const InferContext& context, int i, const AnyTensor& indices) {
  std::int64_t rows = 0, position = 0;
  for (const std::int32_t index : indices.span<std::int32_t>()) {
    if (index < 0) {
      context.fail(
          str_cat("indices[", i, "]", index_to_string(position, indices.shape()), " = ", index, " is negative"));
    }
    rows = std::max(rows, std::int64_t{index} + 1);
    ++position;
  }
  return rows;
}

AnyOutput positions_like(const AnyOutput& x) {
  GraphStore& graph = *x.graph();
  const AnyOutput count = build<SizeOf>({x});
  const AnyOutput flat = build<Range>({int32_constant(graph, 0), count, int32_constant(graph, 1)});
  return x.shape().rank() == 1 ? flat : build<Reshape>({flat, shape_of(x)});
}

std::string index_to_string(std::int64_t position, const Shape& shape) {
  if (shape.rank() == 0) return {};
  const auto strides = row_major_strides(shape);
  std::array<std::int64_t, max_rank> index{};
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    index[at] = position / strides[at];
    position %= strides[at];
  }
  return dims_to_string({index.data(), static_cast<std::size_t>(shape.rank())});
}

std::string bad_shard_id(const ShardOfRow::Attrs& attrs, std::int64_t position, const Shape& ids, std::int64_t id) {
  return str_cat("ids", index_to_string(position, ids), " = ", id, " is outside [0, ", attrs.num_rows,
                 "), the rows of a table in ", attrs.num_shards, " shards");
}

}  // namespace detail

void DynamicPartition::infer(InferContext& context) {
  if (context.num_outputs() < 1) context.fail("needs at least one partition");
  const PartialShape row = detail::infer_row(context, 1, 0);
  const AnyTensor* partitions = context.value(1);
  if (partitions == nullptr) {
    for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, PartialShape{dynamic}.concatenated(row));
    return;
  }
  const std::vector<std::int64_t> counts = detail::count_rows(context, *partitions);
  for (int i = 0; i < context.num_outputs(); ++i) {
    context.set_output(i, PartialShape{counts[static_cast<std::size_t>(i)]}.concatenated(row));
  }
}

/// The gradients of all outputs, each row where it came from.
void DynamicPartition::gradient(GradientContext& context) {
  const Expr data = context.input(0), partitions = context.input(1);
  const AnyOutput positions = detail::positions_like(partitions);
  const AnyOutput merged = detail::any_dynamic_stitch(
      detail::any_dynamic_partition(positions, partitions, context.num_outputs()), detail::all_dy(context));
  context.set_dx(0, build<Reshape>({merged, shape_of(data)}));
}

void DynamicStitch::infer(InferContext& context) {
  const int count = context.num_inputs() / 2;
  if (count < 1) context.fail("needs at least one list of indices, and its data");
  PartialShape row = PartialShape::unknown();
  std::int64_t rows = 0;
  for (int i = 0; i < count; ++i) {
    row = context.merge(row, detail::infer_row(context, i, count + i));
    const AnyTensor* indices = context.value(i);
    if (indices == nullptr) {
      rows = dynamic;
    } else if (const std::int64_t needed = detail::rows_needed(context, i, *indices); rows != dynamic) {
      rows = std::max(rows, needed);
    }
  }
  context.set_output(0, PartialShape{rows}.concatenated(row));
}

void DynamicStitch::gradient(GradientContext& context) {
  const int count = context.num_inputs() / 2;
  for (int i = 0; i < count; ++i) context.set_dx(count + i, build<Gather>({context.dy(), context.input(i)}));
}

void ShardOfRow::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<ShardOfRow>();
  if (attrs.num_rows < 0) context.fail(str_cat("a table of ", attrs.num_rows, " rows"));
  if (attrs.num_shards < 1 || attrs.num_shards > std::numeric_limits<std::int32_t>::max()) {
    context.fail(str_cat("a table in ", attrs.num_shards, " shards"));
  }
  context.set_output(0, context.input(0));
  context.set_output(1, context.input(0));
}

std::vector<AnyOutput> detail::any_dynamic_partition(const AnyOutput& data, const AnyOutput& partitions,
                                                     std::int64_t num_partitions, const At& at) {
  const BuiltNode node = build<DynamicPartition>({data, partitions}, {.num_partitions = num_partitions}, at);
  return outputs_of(node, num_partitions);
}

AnyOutput detail::any_dynamic_stitch(std::vector<AnyOutput> indices, const std::vector<AnyOutput>& data, const At& at) {
  const auto count = static_cast<std::int64_t>(indices.size());
  indices.insert(indices.end(), data.begin(), data.end());
  return build<DynamicStitch>(std::span<const AnyOutput>(indices), {.N = count}, at);
}

AnyOutput detail::any_bincount(const AnyOutput& values, const AnyOutput& size, const AnyOutput& weights, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{values, size}, "Bincount", at);
  const Composite place(graph, at.where);
  Operation check;
  {
    // The check need not be made where the values are, which may be a device without strings.
    GraphStore::Scope anywhere = graph.scope();
    anywhere.colocate({});
    const ScopeGuard outside = graph.enter(std::move(anywhere));
    const AnyOutput is_valid = any_reshape(build<GreaterEqual>({values, scalar_like(values, 0)}), {-1}, {});
    const AnyOutput message = any_constant(graph, Tensor<std::string>("Bincount: a value is negative"), {});
    check = build<Assert>({build<All>({is_valid, int32_constant(graph, 0)}), message, values});
  }
  const AnyOutput checked = any_with_dependencies({&check, 1}, values, {});
  const AnyOutput none = scalar_like(values, -1);
  const AnyOutput ids = any_select({build<Less>({checked, size}), checked, none}, {});
  const AnyOutput ones = weights.is_valid() ? weights : AnyOutput(ones_like(values));
  return build<UnsortedSegmentSum>({ones, ids, size}, {}, at);
}

namespace detail {

constexpr std::string_view boolean_mask_name = "BooleanMask";

/// Fails unless the mask may have the first dimensions of x. Returns whether it has them in every step.
bool mask_is_prefix(const PartialShape& x, const PartialShape& mask, const At& at) {
  const auto fail = [&](const std::string& why) {
    throw_error(Status::invalid_argument(str_cat(why, ": x has shape ", x.to_string(), ", the mask ", mask.to_string()))
                    .with_node(boolean_mask_name, at.name)
                    .with_location(at.where));
  };
  if (!mask.has_rank()) fail("the rank of the mask is not known");
  if (mask.rank() == 0) fail("the mask is a scalar");
  if (!x.has_rank()) return false;
  if (mask.rank() > x.rank()) fail("the mask has more dimensions than x");
  bool is_known = true;
  for (int i = 0; i < mask.rank(); ++i) {
    if (mask[i] == dynamic || x[i] == dynamic) {
      is_known = false;
    } else if (mask[i] != x[i]) {
      fail(str_cat("the mask differs from x in dimension ", i));
    }
  }
  return is_known;
}

/// x, once a step has found that it has the mask's dimensions in front.
AnyOutput checked_prefix(const AnyOutput& x, const AnyOutput& mask) {
  GraphStore& graph = *x.graph();
  Operation check;
  {
    // The check need not be made where x is, which may be a device without strings.
    GraphStore::Scope anywhere = graph.scope();
    anywhere.colocate({});
    const ScopeGuard outside = graph.enter(std::move(anywhere));
    const AnyOutput x_dims = shape_of(x), mask_dims = shape_of(mask);
    const AnyOutput is_same = build<All>(
        {build<Equal>({any_slice(x_dims, {0}, {mask.shape().rank()}, {}), mask_dims}), int32_constant(graph, 0)});
    const AnyOutput message = any_constant(
        graph, Tensor<std::string>("BooleanMask: the mask's shape is not the first part of that of x"), {});
    check = build<Assert>({is_same, message, x_dims, mask_dims}, {.summarize = max_rank});
  }
  return any_with_dependencies({&check, 1}, x, {});
}

AnyOutput any_boolean_mask(const AnyOutput& x, const AnyOutput& mask, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{x, mask}, boolean_mask_name, at);
  const bool is_known = mask_is_prefix(x.shape(), mask.shape(), at);
  const Composite place(graph, at.where);
  const int depth = mask.shape().rank();
  AnyOutput rows = x, flat = mask;
  if (depth > 1) {
    if (!is_known) rows = checked_prefix(x, mask);
    const std::array<AnyOutput, 2> dims{any_reshape(build<SizeOf>({mask}), {1}, {}),
                                        any_slice(shape_of(rows), {depth}, {-1}, {})};
    rows = build<Reshape>({rows, any_concat(0, dims)});
    flat = any_reshape(mask, {-1}, {});
  } else if (!is_known) {
    flat = build<Reshape>({mask, any_slice(shape_of(x), {0}, {1}, {})});  // fails if the numbers of rows differ
  }
  return build<Gather>({rows, any_reshape(build<Where>({flat}), {-1}, {})}, {}, at);
}

}  // namespace detail

}  // namespace dflow
