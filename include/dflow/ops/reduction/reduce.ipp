#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace dflow {

namespace detail {

/// The axes as a set of bits.
std::uint32_t axes_mask(const InferContext& context, const SmallIntegers& axes, int rank) {
  std::uint32_t mask = 0;
  for (const std::int64_t axis : axes) {
    const std::uint32_t bit = 1u << context.normalize_axis(axis, rank);
    if ((mask & bit) != 0) context.fail(str_cat("axis ", axis, " is named twice"));
    mask |= bit;
  }
  return mask;
}

void require_rank_at_most_one(const InferContext& context, int i) {
  if (context.input(i).rank() > 1) {
    context.fail(str_cat("reduction_indices must be a vector or a scalar, got shape ", context.input(i).to_string()));
  }
}

}  // namespace detail

void detail::check_reduction_axes(const InferContext& context) {
  require_rank_at_most_one(context, 1);
  const std::optional<SmallIntegers> axes = known_integers(context, 1);
  const PartialShape& x = context.input(0);
  if (axes && x.has_rank()) static_cast<void>(axes_mask(context, *axes, x.rank()));
}

void detail::infer_reduction(InferContext& context, const ReduceAttrs& attrs) {
  require_rank_at_most_one(context, 1);
  const PartialShape& x = context.input(0);
  if (!x.has_rank()) return;
  const std::optional<SmallIntegers> axes = known_integers(context, 1);
  if (!axes) {
    if (attrs.keep_dims) context.set_output(0, PartialShape::unknown(x.rank()));
    return;
  }
  const std::uint32_t mask = axes_mask(context, *axes, x.rank());
  SmallIntegers dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = (mask >> i & 1u) != 0;
    if (!is_reduced || attrs.keep_dims) dims.push_back(is_reduced ? 1 : x[i]);
  }
  context.set_output(0, PartialShape(dims.span()));
}

namespace detail {

/// Shape of ArgMax and ArgMin.
void infer_arg_reduction(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  const PartialShape& x = context.input(0);
  if (!x.has_rank()) return;
  if (x.rank() == 0) context.fail("a scalar has no dimension to search");
  const std::optional<SmallIntegers> dimension = known_integers(context, 1);
  if (!dimension) return context.set_output(0, PartialShape::unknown(x.rank() - 1));
  const int axis = context.normalize_axis((*dimension)[0], x.rank());
  if (x[axis] == 0 && x.erased(axis).num_elements().value_or(0) != 0) {
    context.fail(str_cat("dimension ", axis, " of shape ", x.to_string(), " has no elements to search"));
  }
  context.set_output(0, x.erased(axis));
}

}  // namespace detail

void ArgMax::infer(InferContext& context) { detail::infer_arg_reduction(context); }
void ArgMin::infer(InferContext& context) { detail::infer_arg_reduction(context); }

void ReducedShape::infer(InferContext& context) {
  detail::require_rank_at_most_one(context, 1);
  context.set_output(0, context.with_rank(0, 1));
}

Expr detail::sum_of_all(const Expr& x) {
  const int rank = x.shape().rank();
  if (rank == 0) return x;
  SmallIntegers axes;
  for (int i = 0; i < std::max(rank, 1); ++i) axes.push_back(i);
  const AnyOutput operand = rank < 0 ? any_reshape(x, {-1}, {}) : AnyOutput(x);
  return AnyOutput(build<Sum>({operand, int32_constant(*x.graph(), axes.span())}));
}

Expr detail::with_reduced_dims(const Expr& reduced, const Expr& x, const Expr& axes, bool keep_dims) {
  if (keep_dims) return reduced;
  const PartialShape& shape = x.shape();
  if (const std::optional<SmallIntegers> known = constant_integers(axes); known && shape.has_rank()) {
    SmallIntegers dims(Tensor<std::int64_t>({shape.rank()}, shape.dims()));
    for (const std::int64_t axis : *known) dims[static_cast<int>(axis < 0 ? axis + shape.rank() : axis)] = 1;
    const std::int64_t open = std::count(dims.begin(), dims.end(), dynamic);
    // -1 stands for one open dimension, unless a 0 leaves it undecided.
    if (open == 0 || (open == 1 && std::count(dims.begin(), dims.end(), 0) == 0)) {
      return AnyOutput(build<Reshape>({reduced, int32_constant(*x.graph(), dims.span())}));
    }
  }
  return AnyOutput(build<Reshape>({reduced, build<ReducedShape>({shape_of(x), axes})}));
}

namespace detail {

/// dy with the reduced dimensions as 1, to broadcast against x.
Expr kept_dy(const GradientContext& context, bool keep_dims) {
  return with_reduced_dims(context.dy(), context.input(0), context.input(1), keep_dims);
}

AnyOutput broadcast_like(const Expr& dy, const Expr& x) { return build<BroadcastTo>({dy, shape_of(x)}); }

/// The elements equal to the maximum or minimum share its gradient evenly.
void extremum_gradient(GradientContext& context, bool keep_dims) {
  const Expr x = context.input(0), axes = context.input(1);
  const AnyOutput y = with_reduced_dims(context.output(0), x, axes, keep_dims);
  const Expr is_extremum = cast_to(build<Equal>({x, y}), x.dtype());
  const Expr count = AnyOutput(build<Sum>({is_extremum, axes}, {.keep_dims = true}));
  context.set_dx(0, is_extremum * (kept_dy(context, keep_dims) / count));
}

}  // namespace detail

void Sum::gradient(GradientContext& context) {
  context.set_dx(0, detail::broadcast_like(detail::kept_dy(context, context.attrs<Sum>().keep_dims), context.input(0)));
}

/// dy / count, where count is the number of elements that each mean is taken of.
void Mean::gradient(GradientContext& context) {
  const Expr x = context.input(0), y = context.output(0);
  const Expr dy = detail::kept_dy(context, context.attrs<Mean>().keep_dims);
  const std::optional<std::int64_t> from = x.shape().num_elements(), to = y.shape().num_elements();
  if (from && to) {
    // NOLINTNEXTLINE(bugprone-integer-division): a product of some of the dimensions divides that of all
    const double count = *to == 0 ? 1.0 : static_cast<double>(*from / *to);
    return context.set_dx(0, detail::broadcast_like(count == 1 ? dy : dy / count, x));
  }
  // In double, or float's range might not hold the number of elements; Half's does not hold many.
  const auto number_of_elements = [](const Expr& of) -> Expr {
    return detail::cast_to(build<SizeOf>({of}), DType::float64);
  };
  const Expr count = detail::cast_to(number_of_elements(x) / number_of_elements(y), x.dtype());
  context.set_dx(0, detail::broadcast_like(dy / count, x));
}

/// Each factor's gradient is the product of the others: right also where factors are 0.
void Prod::gradient(GradientContext& context) {
  const Expr x = context.input(0);
  const Expr others = AnyOutput(build<ExclusiveProd>({x, context.input(1)}));
  context.set_dx(0, detail::kept_dy(context, context.attrs<Prod>().keep_dims) * conj(others));
}

void Max::gradient(GradientContext& context) { detail::extremum_gradient(context, context.attrs<Max>().keep_dims); }
void Min::gradient(GradientContext& context) { detail::extremum_gradient(context, context.attrs<Min>().keep_dims); }

detail::ReduceOperands detail::reduce_operands(const AnyOutput& x, const IndexList& axes, bool keep_dims,
                                               std::string_view op, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, op, at);
  if (axes.is_given()) return {x, axes.edge(graph, DType::int32, at)};
  const At here{.where = at.where};
  const int rank = x.shape().rank();
  if (rank < 0 && keep_dims) return {x, counting(build<RankOf>({x}, {}, here), here)};
  if (rank < 0) return {any_reshape(x, {-1}, here), int32_constant(graph, std::array<std::int64_t, 1>{0}, here)};
  SmallIntegers all;
  for (int i = 0; i < rank; ++i) all.push_back(i);
  return {x, int32_constant(graph, all.span(), here)};
}

AnyOutput detail::arg_operand(const AnyOutput& x, std::int32_t axis, std::string_view op, const At& at) {
  return int32_constant(graph_of({&x, 1}, op, at), axis, {.where = at.where});
}

}  // namespace dflow
