#pragma once

/// Public: gradients of a graph, as more nodes of it.

#include <dflow/graph/graph.hpp>
#include <dflow/op/gradient_context.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

/// The gradient of a sum of ys with respect to one x: an edge, or rows of it if x is only gathered from. It is empty
/// if no y depends on x.
struct Gradient {
  AnyOutput dense;
  std::optional<IndexedSlices> slices;

  bool exists() const noexcept { return dense.is_valid() || slices.has_value(); }
};

/// The gradient as one edge of x's shape: rows are scattered into zeros, a missing gradient is zeros.
AnyOutput densify(const Gradient& gradient, const AnyOutput& x);

/// The same gradients, each available only when all of them are: TensorFlow's `tuple`. If a gradient consists of rows,
/// its values wait. A gradient that does not exist stays so, and a single gradient stays as it was. Lists do not wait,
/// but the other gradients wait for them.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if they belong to different graphs.
std::vector<Gradient> gate(std::span<const Gradient> gradients);

/// How to add up the gradients that flow into one edge from all nodes that read it. Rows are joined and not added,
/// unless another part is dense.
enum class GradientAggregation : std::uint8_t {
  add_n,       ///< by one AddN when all are there: TensorFlow's default, ADD_N
  accumulate,  ///< each added to the sum so far, which may free its memory before the others are computed: the
               ///< purpose of TensorFlow's EXPERIMENTAL_TREE and EXPERIMENTAL_ACCUMULATE_N
};

struct GradientOptions {
  /// Gradients with respect to the ys, in their order; an invalid edge, or none at all, stands for ones.
  std::span<const AnyOutput> grad_ys = {};
  /// Edges that count as constants: no gradient flows through them. A stopped edge that is an x still gets its
  /// gradient, the partial derivative.
  std::span<const AnyOutput> stop_gradients = {};
  GradientAggregation aggregation = GradientAggregation::add_n;
  /// All requested gradients of a differentiated op are computed before any of them is used: they pass through a
  /// `gate`. The same holds in bodies of branches, loops and functions.
  bool gate_gradients = false;
  std::source_location where = std::source_location::current();
};

/// Appends to the graph the nodes that compute d(sum of ys)/dx for every x, by reverse accumulation (Speelpenning
/// 1980; Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). The result is part of the graph like any
/// other edge, so it can be differentiated again. An x that reads a variable, as `Variable` itself does, stands for
/// the variable: all reads of the variable count, `read()` too. The new nodes are named "gradients/...". They have the
/// device constraints of the nodes that they differentiate, and their place in the program: an error in a new node
/// names the line that built the differentiated node.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if ys and xs do not belong to one graph, or a grad_y has another element type or shape than
/// its y. Unimplemented, naming op, node and line, if an op on the way has no gradient, or the graph between xs and ys
/// has a loop.
std::vector<Gradient> gradients(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                const GradientOptions& options = {});

namespace detail {

/// The same for ys in a body. The first `num_given` xs are the edges that the body was given; each stands for that
/// edge alone, even if it reads a variable. The other xs lie around the body. They get the gradients that flow to none
/// of the given edges. A gradient that is given (`GradientOptions::grad_ys`), or that is the result, may have the type
/// of sums of the edge's elements (`sum_type`).
std::vector<Gradient> gradients_in_body(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                        std::size_t num_given, const GradientOptions& options);

/// An edge to differentiate, with the line of the program that asks for it.
struct Differentiated {
  template <Element Y>
  Differentiated(const Output<Y>& edge,  // NOLINT(google-explicit-constructor)
                 std::source_location place = std::source_location::current())
      : y(edge), where(place) {}

  AnyOutput y;
  std::source_location where;
};

}  // namespace detail

/// d(sum of y)/dx as one edge for each x; zeros where y does not depend on it.
///
/// ```cpp
/// auto gx = df::gradients(y, x);
/// auto [ga, gb] = df::gradients(y, a, b);
/// std::vector<df::Output<float>> all = df::gradients(y, weights);  // a vector of them
/// ```
template <Element X>
Output<X> gradients(const detail::Differentiated& of, const Output<X>& x) {
  const AnyOutput& edge = x;
  return Output<X>(densify(gradients({&of.y, 1}, {&edge, 1}, {.where = of.where})[0], x));
}
template <Element... Xs>
  requires(sizeof...(Xs) > 1)
std::tuple<Output<Xs>...> gradients(const detail::Differentiated& of, const Output<Xs>&... xs) {
  const AnyOutput edges[] = {xs...};
  const std::vector<Gradient> all = gradients({&of.y, 1}, std::span(edges), {.where = of.where});
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Output<Xs>...>{Output<Xs>(densify(all[I], xs))...};
  }(std::index_sequence_for<Xs...>{});
}
template <Element X>
std::vector<Output<X>> gradients(const detail::Differentiated& of, const std::vector<Output<X>>& xs) {
  const std::vector<AnyOutput> edges(xs.begin(), xs.end());
  const std::vector<Gradient> all = gradients({&of.y, 1}, edges, {.where = of.where});
  std::vector<Output<X>> typed;
  typed.reserve(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) typed.push_back(Output<X>(densify(all[i], xs[i])));
  return typed;
}
template <Element X>
std::vector<Output<X>> gradients(const detail::Differentiated& of, std::initializer_list<Output<X>> xs) {
  return gradients(of, std::vector<Output<X>>(xs));
}
/// With respect to variables.
template <std::derived_from<AnyOutput> V>
  requires requires { typename V::element_type; } && (!std::same_as<V, Output<typename V::element_type>>)
auto gradients(const detail::Differentiated& of, const std::vector<V>& xs) {
  return gradients(of, std::vector<Output<typename V::element_type>>(xs.begin(), xs.end()));
}

}  // namespace dflow
