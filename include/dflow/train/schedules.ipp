#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/train/schedules.hpp>

#include <algorithm>
#include <functional>
#include <numbers>
#include <string>
#include <utility>

namespace dflow::train {

namespace detail {

/// Builds what follows at the caller's line; throws unless there is a step to count by.
DFLOW_INLINE ScopeGuard enter_schedule(const AnyOutput& step, std::int64_t decay_steps, std::source_location where) {
  const auto reject = [where](std::string message) {
    throw Error(invalid_argument(std::move(message)).with_location(where));
  };
  if (decay_steps < 1) reject(str_cat("a decay needs at least one step, got ", decay_steps));
  if (!step.is_valid()) reject("a decay needs the edge of a global step, got an empty Output");
  return enter_place(*step.graph(), where);
}

DFLOW_INLINE Output<float> scalar(const AnyOutput& beside, float value) {
  return Output<float>::unchecked(dflow::detail::any_constant(*beside.graph(), Tensor<float>::full({}, value), {}));
}

/// min(step / decay_steps, 1).
DFLOW_INLINE Output<float> progress(const Output<std::int64_t>& step, std::int64_t decay_steps) {
  return minimum(cast<float>(step) / static_cast<float>(decay_steps), scalar(step, 1.0f));
}

}  // namespace detail

DFLOW_INLINE Output<float> exponential_decay(float rate, const Output<std::int64_t>& step,
                                             const ExponentialDecayOptions& options, std::source_location where) {
  const ScopeGuard place = detail::enter_schedule(step, options.decay_steps, where);
  Output<float> exponent = cast<float>(step) / static_cast<float>(options.decay_steps);
  if (options.staircase) exponent = floor(exponent);
  return rate * pow(detail::scalar(step, options.decay_rate), exponent);
}

DFLOW_INLINE Output<float> polynomial_decay(float rate, const Output<std::int64_t>& step,
                                            const PolynomialDecayOptions& options, std::source_location where) {
  const ScopeGuard place = detail::enter_schedule(step, options.decay_steps, where);
  const Output<float> left = 1.0f - detail::progress(step, options.decay_steps);
  return (rate - options.end_rate) * pow(left, detail::scalar(step, options.power)) + options.end_rate;
}

DFLOW_INLINE Output<float> piecewise_constant(const Output<std::int64_t>& step,
                                              const std::vector<std::int64_t>& boundaries,
                                              const std::vector<float>& rates, std::source_location where) {
  const auto reject = [where](std::string message) {
    throw Error(invalid_argument("piecewise_constant: " + message).with_location(where));
  };
  if (rates.size() != boundaries.size() + 1) {
    reject(str_cat(boundaries.size(), " boundaries need ", boundaries.size() + 1, " rates, got ", rates.size()));
  }
  if (std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) != boundaries.end()) {
    reject("the boundaries must ascend");
  }
  const ScopeGuard place = detail::enter_schedule(step, 1, where);
  Output<float> rate = detail::scalar(step, rates[0]);
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    rate = rate + cast<float>(step > boundaries[i]) * (rates[i + 1] - rates[i]);
  }
  return rate;
}

DFLOW_INLINE Output<float> cosine_decay(float rate, const Output<std::int64_t>& step, std::int64_t decay_steps,
                                        float alpha, std::source_location where) {
  const ScopeGuard place = detail::enter_schedule(step, decay_steps, where);
  const Output<float> wave = (cos(detail::progress(step, decay_steps) * std::numbers::pi_v<float>) + 1.0f) * 0.5f;
  return (wave * (1.0f - alpha) + alpha) * rate;
}

}  // namespace dflow::train
