#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/train/schedules.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <utility>

namespace dflow::train::detail {

using dflow::detail::any_constant;
using dflow::detail::cast_to;

/// Builds the following nodes at the caller's line; throws unless there is a step to count by and the schedule's
/// numbers are finite.
Composite enter_schedule(const AnyOutput& step, std::int64_t decay_steps, std::span<const double> numbers,
                         std::source_location where) {
  const auto reject = [where](std::string message) {
    throw_error(Status::invalid_argument(std::move(message)).with_location(where));
  };
  if (decay_steps < 1) reject(str_cat("a decay needs at least one step, got ", decay_steps));
  if (!step.is_valid()) reject("a decay needs the edge of a global step, got an empty Output");
  for (const double number : numbers) {
    if (!std::isfinite(number)) reject(str_cat("a number of a schedule is ", number));
  }
  return {*step.graph(), where};
}

/// step / decay_steps, rounded down in a staircase.
Expr decays(DType dtype, const AnyOutput& step, std::int64_t decay_steps, bool staircase = false) {
  const Expr done = Expr(cast_to(step, dtype)) / static_cast<double>(decay_steps);
  return staircase ? Expr(AnyOutput(build<Floor>({done}))) : done;
}

/// min(step / decay_steps, 1).
Expr progress(DType dtype, const AnyOutput& step, std::int64_t decay_steps) {
  const Expr done = decays(dtype, step, decay_steps);
  return AnyOutput(build<Minimum>({done, scalar_like(done, 1)}));
}

AnyOutput any_exponential_decay(DType dtype, double rate, const AnyOutput& step, const ExponentialDecayOptions& options,
                                std::source_location where) {
  const Composite place = enter_schedule(step, options.decay_steps, std::array{rate, options.decay_rate}, where);
  const Expr exponent = decays(dtype, step, options.decay_steps, options.staircase);
  return rate * Expr(AnyOutput(build<Pow>({scalar_like(exponent, options.decay_rate), exponent})));
}

AnyOutput any_inverse_time_decay(DType dtype, double rate, const AnyOutput& step, const TimeDecayOptions& options,
                                 std::source_location where) {
  const Composite place = enter_schedule(step, options.decay_steps, std::array{rate, options.decay_rate}, where);
  return rate / (decays(dtype, step, options.decay_steps, options.staircase) * options.decay_rate + 1.0);
}

AnyOutput any_natural_exponential_decay(DType dtype, double rate, const AnyOutput& step,
                                        const TimeDecayOptions& options, std::source_location where) {
  const Composite place = enter_schedule(step, options.decay_steps, std::array{rate, options.decay_rate}, where);
  const Expr exponent = decays(dtype, step, options.decay_steps, options.staircase) * -options.decay_rate;
  return rate * Expr(AnyOutput(build<Exp>({exponent})));
}

AnyOutput any_polynomial_decay(DType dtype, double rate, const AnyOutput& step, const PolynomialDecayOptions& options,
                               std::source_location where) {
  const Composite place =
      enter_schedule(step, options.decay_steps, std::array{rate, options.end_rate, options.power}, where);
  const Expr left = 1.0 - progress(dtype, step, options.decay_steps);
  const Expr power = AnyOutput(build<Pow>({left, scalar_like(left, options.power)}));
  return (rate - options.end_rate) * power + options.end_rate;
}

/// The sum of the rates, each times 1 in its own interval and 0 elsewhere, which is exact.
AnyOutput any_piecewise_constant(DType dtype, const AnyOutput& step, const std::vector<std::int64_t>& boundaries,
                                 const std::vector<double>& rates, std::source_location where) {
  const auto reject = [&](const std::string& message) {
    throw_error(Status::invalid_argument("piecewise_constant: " + message).with_location(where));
  };
  if (rates.size() != boundaries.size() + 1) {
    reject(str_cat(boundaries.size(), " boundaries need ", boundaries.size() + 1, " rates, got ", rates.size()));
  }
  if (std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) != boundaries.end()) {
    reject("the boundaries must ascend");
  }
  const Composite place = enter_schedule(step, 1, rates, where);
  const AnyOutput one = visit_dtype<TypeList<float, double>>(
      dtype, [&]<class T>() -> AnyOutput { return any_constant(*step.graph(), Tensor<T>::full({}, T(1)), {}); });
  Expr from = one, rate;  // whether the step is past the boundary before the rate
  for (std::size_t i = 0; i < rates.size(); ++i) {
    Expr here = from;
    if (i < boundaries.size()) {
      const AnyOutput boundary = any_constant(*step.graph(), Tensor<std::int64_t>::full({}, boundaries[i]), {});
      const Expr past = cast_to(build<Greater>({step, boundary}), dtype);
      here = from - past;
      from = past;
    }
    rate = rate.is_valid() ? rate + here * rates[i] : here * rates[i];
  }
  return rate;
}

AnyOutput any_cosine_decay(DType dtype, double rate, const AnyOutput& step, std::int64_t decay_steps, double alpha,
                           std::source_location where) {
  const Composite place = enter_schedule(step, decay_steps, std::array{rate, alpha}, where);
  const Expr angle = progress(dtype, step, decay_steps) * std::numbers::pi;
  const Expr wave = (Expr(AnyOutput(build<Cos>({angle}))) + 1.0) * 0.5;
  return (wave * (1.0 - alpha) + alpha) * rate;
}

}  // namespace dflow::train::detail
