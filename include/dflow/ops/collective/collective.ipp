#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/collective/collective.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/reduction/add_n.hpp>

#include <cstddef>
#include <utility>

namespace dflow {

namespace detail {

void require_members(const InferContext& context, int num_inputs) {
  if (context.num_outputs() < 1) context.fail("needs at least one member");
  if (context.num_inputs() != num_inputs) {
    context.fail(str_cat("has ", context.num_inputs(), " values for ", num_inputs, " members"));
  }
}

/// The members whose results have gradients; at least one, in a gradient.
std::vector<int> members_with_dy(const GradientContext& context) {
  std::vector<int> members;
  for (int i = 0; i < context.num_outputs(); ++i) {
    if (context.has_dy(i)) members.push_back(i);
  }
  return members;
}

/// The sum, or mean, of the gradients that results have, for each member; where its own result has none, it is
/// another's.
std::vector<Expr> reduced_dy(const GradientContext& context, ReduceBy reduction = ReduceBy::sum) {
  const std::vector<int> members = members_with_dy(context);
  std::vector<AnyOutput> gradients;
  gradients.reserve(members.size());
  for (const int member : members) gradients.push_back(context.dy(member));
  if (gradients.size() > 1) gradients = any_all_reduce(gradients, reduction);
  std::vector<Expr> sums(static_cast<std::size_t>(context.num_outputs()), Expr(gradients.front()));
  for (std::size_t i = 0; i < members.size(); ++i) sums[static_cast<std::size_t>(members[i])] = gradients[i];
  return sums;
}

/// The gradient with respect to a factor is the product of the others: right also where factors are 0.
void product_gradient(GradientContext& context) {
  const std::vector<Expr> sums = reduced_dy(context);
  for (int i = 0; i < context.num_inputs(); ++i) {
    Expr dx = widened(sums[static_cast<std::size_t>(i)]);
    for (int j = 0; j < context.num_inputs(); ++j) {
      if (j != i) dx = dx * conj(widened(context.input(j)));
    }
    context.set_dx(i, cast_to(dx, context.input(i).dtype()));
  }
}

/// Elements equal to the minimum or maximum share its gradient evenly.
void shared_extremum_gradient(GradientContext& context) {
  const std::vector<Expr> sums = reduced_dy(context);
  std::vector<AnyOutput> hits;
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Expr x = context.input(i);
    hits.push_back(cast_to(build<Equal>({x, context.output(i)}), x.dtype()));
  }
  const std::vector<AnyOutput> counts = any_all_reduce(hits, ReduceBy::sum);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    context.set_dx(static_cast<int>(i), Expr(hits[i]) * (sums[i] / Expr(counts[i])));
  }
}

}  // namespace detail

void AllReduce::infer(InferContext& context) {
  detail::require_members(context, context.num_outputs());
  const ReduceBy reduction = context.attrs<AllReduce>().reduction;
  const bool orders = reduction == ReduceBy::minimum || reduction == ReduceBy::maximum;
  if (orders && is_complex(context.type_arg(0))) context.fail("complex numbers have no order");
  PartialShape shape = context.input(0);
  for (int i = 1; i < context.num_inputs(); ++i) shape = context.merge(shape, context.input(i));
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shape);
}

void AllReduce::gradient(GradientContext& context) {
  const ReduceBy reduction = context.attrs<AllReduce>().reduction;
  if (reduction == ReduceBy::product) return detail::product_gradient(context);
  if (reduction != ReduceBy::sum && reduction != ReduceBy::mean) return detail::shared_extremum_gradient(context);
  const std::vector<Expr> dx = detail::reduced_dy(context, reduction);
  // A mean of N results, if k of them have gradients: not a sum of the gradients, which 16 bits may not hold.
  const int count = context.num_inputs();
  const auto share = static_cast<double>(detail::members_with_dy(context).size()) / count;
  for (int i = 0; i < count; ++i) {
    const Expr& each = dx[static_cast<std::size_t>(i)];
    context.set_dx(i, reduction == ReduceBy::sum || share == 1 ? each : each * share);
  }
}

void AllGather::infer(InferContext& context) {
  detail::require_members(context, context.num_outputs());
  PartialShape shape = PartialShape::unknown();
  std::int64_t rows = 0;
  for (int i = 0; i < context.num_inputs(); ++i) {
    const PartialShape& x = context.with_rank_at_least(i, 1);
    if (!x.has_rank()) {
      rows = dynamic;
      continue;
    }
    if (shape.has_rank() && shape.rank() != x.rank()) {
      context.fail(str_cat("the values have different ranks: ", shape.to_string(), " and ", x.to_string()));
    }
    shape = context.merge(shape, x.with_dim(0, dynamic));
    if (rows == dynamic) continue;
    rows = x[0] == dynamic ? dynamic : try_add(rows, x[0]).value_or(-2);
    if (rows == -2) context.fail("the result is too large to be counted");
  }
  if (shape.has_rank()) shape = shape.with_dim(0, rows);
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shape);
}

/// The gradient with respect to a value is the sum of its rows in the gradients of all results.
void AllGather::gradient(GradientContext& context) {
  const int count = context.num_inputs();
  if (count == 1) return context.set_dx(0, context.dy());
  GraphStore& graph = context.graph();
  std::vector<AnyOutput> sizes{detail::int32_constant(graph, 0)};
  for (int i = 0; i < count; ++i) sizes.push_back(shape_of(context.input(i)));
  const BuiltNode offsets = build<ConcatOffset>(std::span<const AnyOutput>(sizes), {.count = count});
  const std::vector<int> members = detail::members_with_dy(context);
  for (int i = 0; i < count; ++i) {
    // The rows of member i come first, so that they are added where they are.
    std::vector<AnyOutput> rows;
    for (const int member : members) {
      const AnyOutput part =
          build<Slice>({context.dy(member), offsets.output(i), sizes[static_cast<std::size_t>(i) + 1]});
      rows.insert(member == i ? rows.begin() : rows.end(), part);
    }
    context.set_dx(i, rows.size() == 1 ? rows.front() : AnyOutput(build<AddN>(std::span<const AnyOutput>(rows))));
  }
}

void CollectiveBroadcast::infer(InferContext& context) {
  detail::require_members(context, 1);
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, context.input(0));
}

void CollectiveBroadcast::gradient(GradientContext& context) {
  const std::vector<int> members = detail::members_with_dy(context);
  context.set_dx(0, detail::reduced_dy(context)[static_cast<std::size_t>(members.front())]);
}

std::vector<AnyOutput> detail::any_all_reduce(std::span<const AnyOutput> values, ReduceBy reduction, const At& at) {
  const auto count = static_cast<std::int64_t>(values.size());
  return outputs_of(build<AllReduce>(values, {.reduction = reduction, .count = count}, at), count);
}

std::vector<AnyOutput> detail::any_all_gather(std::span<const AnyOutput> values, const At& at) {
  const auto count = static_cast<std::int64_t>(values.size());
  return outputs_of(build<AllGather>(values, {.count = count}, at), count);
}

std::vector<AnyOutput> detail::any_broadcast_to_devices(const AnyOutput& value, std::span<const std::string> devices,
                                                        const At& at) {
  GraphStore& graph = graph_of({&value, 1}, CollectiveBroadcast::name, at);
  const auto count = static_cast<std::int64_t>(devices.size());
  const BuiltNode node = build<CollectiveBroadcast>({value}, {.count = count}, at);
  std::vector<AnyOutput> copies;
  copies.reserve(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    GraphStore::Scope alone = graph.scope();
    alone.colocated_with = NodeId();
    const ScopeGuard outside = graph.enter(std::move(alone));
    const ScopeGuard there = enter_device(graph, devices[i], at.where);
    copies.push_back(build<Identity>({node.output(static_cast<int>(i))}, {}, {.where = at.where}));
  }
  return copies;
}

}  // namespace dflow
