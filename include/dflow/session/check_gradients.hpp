#pragma once

/// Public: gradients compared with finite differences.

#include <dflow/graph/output.hpp>
#include <dflow/session/feed.hpp>
#include <dflow/session/session.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace dflow {

struct GradientCheckOptions {
  /// What else the step is fed: values that are not differentiated by.
  std::vector<Feed> feeds = {};
  /// How far an element is moved to each side; none: 1e-5 where all is double, 2^-10 in float, 2^-4 in 16 bits.
  std::optional<double> delta = {};
  /// What an error may be, for a gradient of 1 or less, and in proportion to larger ones; none: 1e-5 where all is
  /// double, 1e-2 in float, 0.1 in half, 0.3 in bfloat16.
  std::optional<double> tolerance = {};
  std::source_location where = std::source_location::current();
};

/// How far gradients are from finite differences: the element with the largest error.
struct GradientCheck {
  double max_error = 0;  ///< relative to the difference, where that is more than 1; infinite if one is no number
  double tolerance = 0;
  std::size_t input = 0;                      ///< which of the xs it is of
  std::string name = {};                      ///< that one's
  std::vector<std::int64_t> index = {};       ///< of the element
  std::complex<double> gradient, difference;  ///< by the graph, and by differences; real but for complex xs

  bool is_ok() const noexcept { return max_error <= tolerance; }
  /// "x 'w' at [1,0]: 2 by the graph, 1 by differences, an error of 1 where 1e-05 is allowed"
  std::string to_string() const;
};

/// Compares the gradient of y with respect to each x, at the value that it is fed, with central differences: a sum of
/// y's elements with fixed weights is differentiated, once by the graph's nodes (`gradients`) and once by a step to
/// each side for every element of every x. A complex element is moved by real and by imaginary amounts; its gradient is
/// TensorFlow's, the conjugate of the derivative.
///
/// ```cpp
/// df::GradientCheck check = df::check_gradients(session, y, {{x, some}, {w, weights}});
/// if (!check.is_ok()) std::cerr << check.to_string();
/// ```
/// y may have any shape, and has the same value whenever the same is fed: draws of random numbers have not. Near a
/// kink, as of `relu` at 0, differences are no gradient. Adds the gradient's nodes to the graph.
///
/// Blocks. Thread safety: builds; see Graph.
/// Errors: InvalidArgument without an x, and for elements of y or of an x that are neither floating nor complex; those
/// of `gradients` and of the session.
GradientCheck check_gradients(Session& session, const AnyOutput& y, const std::vector<Feed>& xs,
                              const GradientCheckOptions& options = {});

}  // namespace dflow
