#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/one_hot.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <optional>
#include <utility>

namespace dflow {

void OneHot::infer(InferContext& context) {
  for (int i = 1; i < 4; ++i) static_cast<void>(context.with_rank(i, 0));
  const std::int64_t axis = context.attrs<OneHot>().axis;
  if (axis < -1) context.fail(str_cat("axis ", axis, " is below -1"));
  std::int64_t depth = dynamic;
  if (const std::optional<detail::SmallIntegers> value = detail::known_integers(context, 1)) {
    depth = (*value)[0];
    if (depth < 0) context.fail(str_cat("depth ", depth, " is negative"));
  }
  const PartialShape& indices = context.input(0);
  if (!indices.has_rank()) return;
  if (axis > indices.rank()) context.fail(str_cat("axis ", axis, " is outside [-1, ", indices.rank(), "]"));
  if (indices.rank() == max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  context.set_output(0, indices.inserted(axis == -1 ? indices.rank() : static_cast<int>(axis), depth));
}

/// y = off + (on - off) * hot, where hot is 1 at the indices and 0 elsewhere.
void OneHot::gradient(GradientContext& context) {
  const Expr dy = context.dy();
  const AnyOutput one = scalar_like(dy, 1), zero = scalar_like(dy, 0);
  const auto part = [&](const AnyOutput& on, const AnyOutput& off) {
    const Expr mask = AnyOutput(build<OneHot>({context.input(0), context.input(1), on, off}, context.attrs<OneHot>()));
    return detail::sum_of_all(dy * mask);
  };
  context.set_dx(2, part(one, zero));
  context.set_dx(3, part(zero, one));
}

AnyOutput detail::any_one_hot(const AnyOutput& indices, std::int32_t depth, AnyTensor on, AnyTensor off,
                              OneHot::Attrs attrs, const At& at) {
  GraphStore& graph = graph_of({&indices, 1}, OneHot::name, at);
  const At here{.where = at.where};
  const AnyOutput on_value = any_constant(graph, std::move(on), here),
                  off_value = any_constant(graph, std::move(off), here);
  return build<OneHot>({indices, int32_constant(graph, depth, here), on_value, off_value}, attrs, at);
}

}  // namespace dflow
