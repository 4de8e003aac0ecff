#pragma once

#include <dflow/graph/output.hpp>

#include <cstdint>
#include <source_location>
#include <vector>

namespace dflow::train {

/// A learning rate as a function of the global step: an edge for an optimizer.
///
/// ```cpp
/// df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
/// auto rate = df::train::exponential_decay(0.1f, step, {.decay_steps = 1000, .decay_rate = 0.5f, .staircase = true});
/// auto train = df::train::GradientDescent(rate).minimize(loss, {.global_step = step});
/// ```
struct ExponentialDecayOptions {
  std::int64_t decay_steps = 1000;
  float decay_rate = 0.96f;
  bool staircase = false;  ///< step / decay_steps is rounded down
};
/// rate * decay_rate^(step / decay_steps). Errors: InvalidArgument if decay_steps < 1.
Output<float> exponential_decay(float rate, const Output<std::int64_t>& step,
                                const ExponentialDecayOptions& options = {},
                                std::source_location where = std::source_location::current());

struct PolynomialDecayOptions {
  std::int64_t decay_steps = 1000;
  float end_rate = 1e-4f;
  float power = 1.0f;
};
/// From `rate` to `end_rate` at decay_steps: (rate - end_rate) (1 - step / decay_steps)^power + end_rate.
Output<float> polynomial_decay(float rate, const Output<std::int64_t>& step,
                               const PolynomialDecayOptions& options = {},
                               std::source_location where = std::source_location::current());

/// rates[i] up to and including step boundaries[i], the last rate after that.
/// Errors: InvalidArgument unless the boundaries ascend and there is one rate more than boundaries.
Output<float> piecewise_constant(const Output<std::int64_t>& step, const std::vector<std::int64_t>& boundaries,
                                 const std::vector<float>& rates,
                                 std::source_location where = std::source_location::current());

/// rate * ((1 - alpha) (1 + cos(pi min(step / decay_steps, 1))) / 2 + alpha) (Loshchilov and Hutter 2016,
/// arXiv:1608.03983).
Output<float> cosine_decay(float rate, const Output<std::int64_t>& step, std::int64_t decay_steps, float alpha = 0.0f,
                           std::source_location where = std::source_location::current());

}  // namespace dflow::train

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/schedules.ipp>
#endif
