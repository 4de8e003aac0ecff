#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/gradient_context.hpp>

#include <initializer_list>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

/// The gradient of a sum of ys with respect to one x: an edge, or rows of it where x is only gathered from, or nothing if no
/// y depends on x.
struct Gradient {
  AnyOutput dense;
  std::optional<IndexedSlices> slices;

  bool exists() const noexcept { return dense.is_valid() || slices.has_value(); }
};

/// The gradient as one edge of x's shape: rows are scattered into zeros, a missing gradient is zeros.
AnyOutput densify(const Gradient& gradient, const AnyOutput& x);

struct GradientOptions {
  /// Gradients with respect to the ys, in their order; an invalid edge, or none at all, stands for ones.
  std::span<const AnyOutput> grad_ys = {};
  /// Edges taken for constants: nothing flows through them.
  std::span<const AnyOutput> stop_gradients = {};
};

/// Appends to the graph the nodes that compute d(sum of ys)/dx for every x, by reverse accumulation (Speelpenning 1980;
/// Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). The result is part of the graph like any other edge, so
/// it can be differentiated again. The new nodes are named "gradients/..." and have the device constraints of the
/// nodes they differentiate.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if ys and xs do not belong to one graph, or a grad_y has another element type or shape
/// than its y; Unimplemented, naming op, node and line, if an op on the way has no gradient.
std::vector<Gradient> gradients(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                const GradientOptions& options = {});

/// d(sum of y)/dx as one edge; zeros where y does not depend on x.
///
/// ```cpp
/// auto gx = df::gradients(y, x);
/// auto [ga, gb] = df::gradients(y, a, b);
/// ```
template <Element Y, Element X>
Output<X> gradients(const Output<Y>& y, const Output<X>& x) {
  const AnyOutput ys[] = {y}, xs[] = {x};
  return Output<X>(densify(gradients(std::span(ys), std::span(xs))[0], x));
}
template <Element Y, Element... Xs>
  requires(sizeof...(Xs) > 1)
std::tuple<Output<Xs>...> gradients(const Output<Y>& y, const Output<Xs>&... xs) {
  const AnyOutput ys[] = {y}, edges[] = {xs...};
  const std::vector<Gradient> all = gradients(std::span(ys), std::span(edges));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Output<Xs>...>{Output<Xs>(densify(all[I], xs))...};
  }(std::index_sequence_for<Xs...>{});
}

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/autodiff/gradients.ipp>
#endif
