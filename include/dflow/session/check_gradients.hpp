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
  /// More feeds of the step; the check does not differentiate with respect to them.
  std::vector<Feed> feeds = {};
  /// How far an element is moved to each side. If empty: 1e-5 for double, 2^-10 for float, 2^-4 for 16 bits; the least
  /// precise element type decides.
  std::optional<double> delta = {};
  /// The allowed error: absolute for a gradient of 1 or less, relative for a larger gradient. If empty: 1e-5 for
  /// double, 1e-2 for float, 0.1 for half, 0.3 for bfloat16; the least precise element type decides.
  std::optional<double> tolerance = {};
  std::source_location where = std::source_location::current();
};

/// How far gradients are from finite differences: the element with the largest error.
struct GradientCheck {
  double max_error = 0;  ///< relative to a difference of more than 1, else absolute; infinite if a value is no number
  double tolerance = 0;
  std::size_t input = 0;                      ///< index of the x in the xs
  std::string name = {};                      ///< name of the x
  std::vector<std::int64_t> index = {};       ///< of the element
  std::complex<double> gradient, difference;  ///< by the graph, and by differences; real unless x is complex

  bool is_ok() const noexcept { return max_error <= tolerance; }
  /// "ok: the largest error is 3e-10, within the allowed 1e-05 (x 'w' at [1,0]: 2 by the graph, 2 by differences)", or
  /// "wrong: the largest error is 1, more than the allowed 1e-05 (x 'w' at [1,0]: ...)"
  std::string to_string() const;
};

/// Compares the gradient of y with respect to each x, at its fed value, with central differences. The differentiated
/// function is a sum of y's elements with fixed weights. One gradient comes from the graph's nodes (`gradients`), the
/// other from a step to each side for every element of every x. A complex element is moved by real and by imaginary
/// amounts; its gradient is TensorFlow's, the conjugate of the derivative.
///
/// ```cpp
/// df::GradientCheck check = df::check_gradients(session, y, {{x, some}, {w, weights}});
/// if (!check.is_ok()) std::cerr << check.to_string();
/// ```
/// y may have any shape. Equal feeds must give equal values of y, so y must not draw random numbers. Near a kink, as of
/// `relu` at 0, differences are no gradient. The check adds the gradient's nodes to the graph.
///
/// Blocks. Thread safety: builds; see Graph.
/// Errors: InvalidArgument if there is no x, or the elements of y or of an x are neither floating nor complex; the
/// errors of `gradients` and of the session.
GradientCheck check_gradients(Session& session, const AnyOutput& y, const std::vector<Feed>& xs,
                              const GradientCheckOptions& options = {});

}  // namespace dflow
