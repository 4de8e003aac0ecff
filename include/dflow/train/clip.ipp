#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/train/clip.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace dflow {

namespace detail {

Expr half_squared_norm(const AnyOutput& x) { return AnyOutput(build<L2Loss>({widened(x)})); }

AnyOutput scaled(const AnyOutput& x, const Expr& factor) {
  const AnyOutput in = widened(x);
  const AnyOutput product = Expr(in) * Expr(cast_to(factor, in.dtype()));
  return cast_to(product, x.dtype());
}

/// The slope of the root at 0 is infinite, so the root of 1 is computed instead: a norm of 0 has gradient 0, as in
/// TensorFlow.
Expr norm_from_half_square(const Expr& half) {
  const Expr is_positive = AnyOutput(build<Greater>({half, scalar_like(half, 0.0)}));
  const Expr rooted = AnyOutput(build<Select>({is_positive, half, scalar_like(half, 1.0)}));
  return AnyOutput(build<Select>({is_positive, AnyOutput(build<Sqrt>({rooted * 2.0})), half}));
}

/// max_norm / max(norm, max_norm): 1 if the norm is small enough.
Expr shrinking_factor(const Expr& norm, double max_norm) {
  const double largest =
      norm.dtype() == DType::float64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const Expr limit = scalar_like(norm, std::min(max_norm, largest));
  return limit / Expr(AnyOutput(build<Maximum>({norm, limit})));
}

AnyOutput any_clip_by_norm(const AnyOutput& x, double max_norm, bool of_average, const At& at) {
  const std::string_view name = of_average ? "clip_by_average_norm" : "clip_by_norm";
  if (!(max_norm > 0))
    throw_error(
        Status::invalid_argument(str_cat(name, ": the norm must be positive, is ", max_norm)).with_location(at.where));
  if (!x.is_valid())
    throw_error(Status::invalid_argument(str_cat(name, ": x is an empty Output")).with_location(at.where));
  const Composite place(*x.graph(), at.where);
  if (std::isinf(max_norm)) return build<Identity>({x}, {}, at);
  Expr norm = norm_from_half_square(half_squared_norm(x));
  if (of_average) norm = norm / Expr(cast_to(AnyOutput(build<SizeOf>({x})), norm.dtype()));
  return scaled(x, shrinking_factor(norm, max_norm));
}

}  // namespace detail

AnyOutput train::global_norm(std::span<const GradientAndVariable> gradients, std::source_location where) {
  Expr sum;
  std::optional<Composite> place;
  for (const GradientAndVariable& each : gradients) {
    if (!each.gradient.exists()) continue;
    const AnyOutput& values = detail::values_of(each.gradient);
    if (!place) place.emplace(*values.graph(), where);
    const Expr half = dflow::detail::half_squared_norm(values);
    sum = sum.is_valid() ? sum + Expr(dflow::detail::cast_to(half, sum.dtype())) : half;
  }
  if (!sum.is_valid()) throw_error(Status::invalid_argument("global_norm: there is no gradient").with_location(where));
  return dflow::detail::norm_from_half_square(sum);
}

std::vector<train::GradientAndVariable> train::clip_by_global_norm(std::vector<GradientAndVariable> gradients,
                                                                   double max_norm, std::source_location where) {
  if (!(max_norm > 0)) {
    throw_error(Status::invalid_argument(str_cat("clip_by_global_norm: the norm must be positive, is ", max_norm))
                    .with_location(where));
  }
  const Expr norm = global_norm(gradients, where);
  const Composite place(*norm.graph(), where);
  // norm - norm is 0 if the norm is finite, else not a number. Without it the factor of an infinite norm would be 0.
  const Expr factor = dflow::detail::shrinking_factor(norm, max_norm) + (norm - norm);
  for (GradientAndVariable& each : gradients) {
    if (!each.gradient.exists()) continue;
    AnyOutput& values = detail::values_of(each.gradient);
    values = dflow::detail::scaled(values, factor);
  }
  return gradients;
}

}  // namespace dflow
