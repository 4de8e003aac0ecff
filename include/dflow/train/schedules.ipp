#pragma once

#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/train/schedules.hpp>

#include <numbers>

namespace dflow::train {

namespace detail {

DFLOW_INLINE void require_steps(std::int64_t decay_steps) {
  if (decay_steps < 1) throw Error(invalid_argument(str_cat("a decay needs at least one step, got ", decay_steps)));
}

DFLOW_INLINE Output<float> scalar(const AnyOutput& beside, float value) {
  return Output<float>::unchecked(dflow::detail::any_constant(*beside.graph(), Tensor<float>::full({}, value), {}));
}

/// min(step / decay_steps, 1).
DFLOW_INLINE Output<float> progress(const Output<std::int64_t>& step, std::int64_t decay_steps) {
  require_steps(decay_steps);
  return minimum(cast<float>(step) / static_cast<float>(decay_steps), scalar(step, 1.0f));
}

}  // namespace detail

DFLOW_INLINE Output<float> exponential_decay(float rate, const Output<std::int64_t>& step,
                                             const ExponentialDecayOptions& options) {
  detail::require_steps(options.decay_steps);
  Output<float> exponent = cast<float>(step) / static_cast<float>(options.decay_steps);
  if (options.staircase) exponent = floor(exponent);
  return rate * pow(detail::scalar(step, options.decay_rate), exponent);
}

DFLOW_INLINE Output<float> polynomial_decay(float rate, const Output<std::int64_t>& step,
                                            const PolynomialDecayOptions& options) {
  const Output<float> left = 1.0f - detail::progress(step, options.decay_steps);
  return (rate - options.end_rate) * pow(left, detail::scalar(step, options.power)) + options.end_rate;
}

DFLOW_INLINE Output<float> piecewise_constant(const Output<std::int64_t>& step,
                                              const std::vector<std::int64_t>& boundaries,
                                              const std::vector<float>& rates) {
  if (rates.size() != boundaries.size() + 1) {
    throw Error(invalid_argument(str_cat("piecewise_constant: ", boundaries.size(), " boundaries need ",
                                         boundaries.size() + 1, " rates, got ", rates.size())));
  }
  Output<float> rate = detail::scalar(step, rates[0]);
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    if (i > 0 && boundaries[i] <= boundaries[i - 1])
      throw Error(invalid_argument("piecewise_constant: the boundaries must ascend"));
    rate = rate + cast<float>(step > boundaries[i]) * (rates[i + 1] - rates[i]);
  }
  return rate;
}

DFLOW_INLINE Output<float> cosine_decay(float rate, const Output<std::int64_t>& step, std::int64_t decay_steps,
                                        float alpha) {
  const Output<float> wave = (cos(detail::progress(step, decay_steps) * std::numbers::pi_v<float>) + 1.0f) * 0.5f;
  return (wave * (1.0f - alpha) + alpha) * rate;
}

}  // namespace dflow::train
