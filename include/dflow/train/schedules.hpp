#pragma once

#include <dflow/graph/output.hpp>

#include <concepts>
#include <cstdint>
#include <source_location>
#include <vector>

namespace dflow::train {

// A schedule is a learning rate as a function of the global step: an edge for an optimizer.
//
// ```cpp
// df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
// auto rate = df::train::exponential_decay(0.1, step, {.decay_steps = 1000, .decay_rate = 0.5, .staircase = true});
// auto train = df::train::GradientDescent(rate).minimize(loss, {.global_step = step});
// ```
// It is computed in float; for double variables say `exponential_decay<double>(...)`. Numbers that are infinite or NaN
// are InvalidArgument.

struct ExponentialDecayOptions {
  std::int64_t decay_steps = 1000;
  double decay_rate = 0.96;
  bool staircase = false;  ///< step / decay_steps is rounded down
};

/// For `inverse_time_decay` and `natural_exponential_decay`.
struct TimeDecayOptions {
  std::int64_t decay_steps = 1000;
  double decay_rate = 0.5;
  bool staircase = false;  ///< step / decay_steps is rounded down
};

struct PolynomialDecayOptions {
  std::int64_t decay_steps = 1000;
  double end_rate = 1e-4;
  double power = 1;
};

/// The element types that a schedule is computed in.
template <class T>
concept ScheduleElement = std::same_as<T, float> || std::same_as<T, double>;

namespace detail {
AnyOutput any_exponential_decay(DType dtype, double rate, const AnyOutput& step, const ExponentialDecayOptions& options,
                                std::source_location where);
AnyOutput any_inverse_time_decay(DType dtype, double rate, const AnyOutput& step, const TimeDecayOptions& options,
                                 std::source_location where);
AnyOutput any_natural_exponential_decay(DType dtype, double rate, const AnyOutput& step,
                                        const TimeDecayOptions& options, std::source_location where);
AnyOutput any_polynomial_decay(DType dtype, double rate, const AnyOutput& step, const PolynomialDecayOptions& options,
                               std::source_location where);
AnyOutput any_piecewise_constant(DType dtype, const AnyOutput& step, const std::vector<std::int64_t>& boundaries,
                                 const std::vector<double>& rates, std::source_location where);
AnyOutput any_cosine_decay(DType dtype, double rate, const AnyOutput& step, std::int64_t decay_steps, double alpha,
                           std::source_location where);
}  // namespace detail

/// rate * decay_rate^(step / decay_steps). Errors: InvalidArgument if decay_steps < 1.
template <ScheduleElement T = float>
Output<T> exponential_decay(double rate, const Output<std::int64_t>& step, const ExponentialDecayOptions& options = {},
                            std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_exponential_decay(dtype_of<T>, rate, step, options, where));
}

/// rate / (1 + decay_rate * step / decay_steps). Errors: InvalidArgument if decay_steps < 1.
template <ScheduleElement T = float>
Output<T> inverse_time_decay(double rate, const Output<std::int64_t>& step, const TimeDecayOptions& options = {},
                             std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_inverse_time_decay(dtype_of<T>, rate, step, options, where));
}

/// rate * exp(-decay_rate * step / decay_steps). Errors: InvalidArgument if decay_steps < 1.
template <ScheduleElement T = float>
Output<T> natural_exponential_decay(double rate, const Output<std::int64_t>& step, const TimeDecayOptions& options = {},
                                    std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_natural_exponential_decay(dtype_of<T>, rate, step, options, where));
}

/// From `rate` to `end_rate` at decay_steps, and that from then on: (rate - end_rate) (1 - step / decay_steps)^power +
/// end_rate. Errors: InvalidArgument if decay_steps < 1.
template <ScheduleElement T = float>
Output<T> polynomial_decay(double rate, const Output<std::int64_t>& step, const PolynomialDecayOptions& options = {},
                           std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_polynomial_decay(dtype_of<T>, rate, step, options, where));
}

/// rates[i] up to and including step boundaries[i], the last rate after that.
/// Errors: InvalidArgument unless the boundaries ascend and there is one rate more than boundaries.
template <ScheduleElement T = float>
Output<T> piecewise_constant(const Output<std::int64_t>& step, const std::vector<std::int64_t>& boundaries,
                             const std::vector<double>& rates,
                             std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_piecewise_constant(dtype_of<T>, step, boundaries, rates, where));
}

/// rate * ((1 - alpha) (1 + cos(pi min(step / decay_steps, 1))) / 2 + alpha) (Loshchilov and Hutter 2016,
/// arXiv:1608.03983). Errors: InvalidArgument if decay_steps < 1.
template <ScheduleElement T = float>
Output<T> cosine_decay(double rate, const Output<std::int64_t>& step, std::int64_t decay_steps, double alpha = 0,
                       std::source_location where = std::source_location::current()) {
  return Output<T>::unchecked(detail::any_cosine_decay(dtype_of<T>, rate, step, decay_steps, alpha, where));
}

}  // namespace dflow::train
