#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/random/random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace dflow {

namespace detail {

RandomAttrs random_attrs(GraphStore& graph, std::uint64_t seed) {
  return {.seed = static_cast<std::int64_t>(next_op_seed(graph, seed))};
}

[[noreturn]] void reject_random(const GraphStore& graph, std::string_view op, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message))
                  .with_node(op, at.name)
                  .with_location(graph.scope().where.value_or(at.where)));
}

/// O's numbers times `scale` plus `shift`, and at most `limit`; the node at the end gets the name.
template <class O>
AnyOutput scaled_random(GraphStore& graph, DType dtype, const IndexList& shape, std::uint64_t seed, double scale,
                        double shift, std::optional<double> limit, const At& at) {
  const At unnamed{.where = at.where};
  const bool scales = scale != 1, shifts = shift != 0, is_limited = limit && (scales || shifts);
  const AnyOutput dims = shape.edge(graph, unnamed);
  Expr x = AnyOutput(
      build<O>(graph, {&dims, 1}, random_attrs(graph, seed), scales || shifts ? unnamed : at, one_type(dtype)));
  if (scales) x = AnyOutput(build<Mul>({x, scalar_like(x, scale)}, {}, shifts || is_limited ? unnamed : at));
  if (shifts) x = AnyOutput(build<Add>({x, scalar_like(x, shift)}, {}, is_limited ? unnamed : at));
  if (is_limited) x = AnyOutput(build<Minimum>({x, scalar_like(x, *limit)}, {}, at));
  return x;
}

bool is_finite_in(DType dtype, double value) {
  return visit_dtype<FloatTypes>(dtype,
                                 [&]<class T>() { return std::isfinite(static_cast<double>(static_cast<T>(value))); });
}

/// The largest number of the element type below `bound`, but none below `least`: the numbers of [least, bound),
/// computed and rounded in that type, may otherwise be `bound`.
double largest_below(DType dtype, double bound, double least) {
  const double below = std::nextafter(bound, -std::numeric_limits<double>::infinity());
  return visit_dtype<FloatTypes>(dtype, [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    int exponent = 0;
    std::frexp(below, &exponent);
    const int last = std::max(exponent, Limits::min_exponent) - Limits::digits;
    const double largest = std::ldexp(std::floor(std::ldexp(below, -last)), last);
    return std::max(std::min(largest, static_cast<double>(Limits::max())), least);
  });
}

template <class O>
AnyOutput scaled_normal(GraphStore& graph, DType dtype, const IndexList& shape, const NormalOptions& options,
                        const At& at) {
  if (!(options.stddev >= 0))
    reject_random(graph, O::name, str_cat("the standard deviation ", options.stddev, " is negative"), at);
  return scaled_random<O>(graph, dtype, shape, options.seed, options.stddev, options.mean, std::nullopt, at);
}

}  // namespace detail

void RandomUniform::infer(InferContext& context) { detail::infer_shape_argument(context); }
void RandomStandardNormal::infer(InferContext& context) { detail::infer_shape_argument(context); }
void TruncatedNormal::infer(InferContext& context) { detail::infer_shape_argument(context); }

void RandomUniformInt::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  static_cast<void>(context.with_rank(2, 0));
  const auto low = context.value_as_integers(1), high = context.value_as_integers(2);
  if (low && high && low->at(0) >= high->at(0)) {
    context.fail(str_cat("there is no integer from ", low->at(0), " to below ", high->at(0)));
  }
  detail::infer_shape_argument(context);
}

AnyOutput detail::any_random_uniform(GraphStore& graph, DType dtype, const IndexList& shape,
                                     const UniformOptions& options, const At& at) {
  if (!(options.minval <= options.maxval)) {
    reject_random(graph, RandomUniform::name,
                  str_cat("minval ", options.minval, " is greater than maxval ", options.maxval), at);
  }
  if (!is_finite_in(dtype, options.minval) || !is_finite_in(dtype, options.maxval - options.minval)) {
    reject_random(
        graph, RandomUniform::name,
        str_cat("the range from ", options.minval, " to ", options.maxval, " is not finite in ", dtype_name(dtype)),
        at);
  }
  return scaled_random<RandomUniform>(graph, dtype, shape, options.seed, options.maxval - options.minval,
                                      options.minval, largest_below(dtype, options.maxval, options.minval), at);
}

AnyOutput detail::any_random_uniform_int(GraphStore& graph, const IndexList& shape, AnyTensor minval, AnyTensor maxval,
                                         std::uint64_t seed, const At& at) {
  const At unnamed{.where = at.where};
  const AnyOutput dims = shape.edge(graph, unnamed);
  const AnyOutput low = any_constant(graph, std::move(minval), unnamed);
  const AnyOutput high = any_constant(graph, std::move(maxval), unnamed);
  return build<RandomUniformInt>({dims, low, high}, random_attrs(graph, seed), at);
}

AnyOutput detail::any_random_normal(GraphStore& graph, DType dtype, const IndexList& shape,
                                    const NormalOptions& options, const At& at) {
  return scaled_normal<RandomStandardNormal>(graph, dtype, shape, options, at);
}

AnyOutput detail::any_truncated_normal(GraphStore& graph, DType dtype, const IndexList& shape,
                                       const NormalOptions& options, const At& at) {
  return scaled_normal<TruncatedNormal>(graph, dtype, shape, options, at);
}

}  // namespace dflow
