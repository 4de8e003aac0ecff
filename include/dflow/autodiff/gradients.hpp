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

/// The gradient of a sum of ys with respect to one x: an edge, or rows of it where x is only gathered from, or nothing
/// if no y depends on x.
struct Gradient {
  AnyOutput dense;
  std::optional<IndexedSlices> slices;

  bool exists() const noexcept { return dense.is_valid() || slices.has_value(); }
};

/// The gradient as one edge of x's shape: rows are scattered into zeros, a missing gradient is zeros.
AnyOutput densify(const Gradient& gradient, const AnyOutput& x);

/// The gradients themselves, each available once all are: TensorFlow's `tuple`. Of rows the values wait. What does not
/// exist stays so, one alone is as it was, and lists are waited for but do not wait.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if they belong to different graphs.
std::vector<Gradient> gate(std::span<const Gradient> gradients);

/// How the gradients are added up that flow into one edge from all that read it. Rows are joined and not added, unless
/// another part is dense.
enum class GradientAggregation : std::uint8_t {
  add_n,       ///< by one AddN when all are there: TensorFlow's default, ADD_N
  accumulate,  ///< each to the sum of those before it, which may free it before others are computed: what TensorFlow's
               ///< EXPERIMENTAL_TREE and EXPERIMENTAL_ACCUMULATE_N are for
};

struct GradientOptions {
  /// Gradients with respect to the ys, in their order; an invalid edge, or none at all, stands for ones.
  std::span<const AnyOutput> grad_ys = {};
  /// Edges taken for constants: nothing flows through them. One that is an x gets its gradient all the same, the
  /// partial derivative.
  std::span<const AnyOutput> stop_gradients = {};
  GradientAggregation aggregation = GradientAggregation::add_n;
  /// Of each op that is differentiated all gradients that are asked for are computed before any of them is used: a
  /// `gate` of them. In bodies of branches, loops and functions too.
  bool gate_gradients = false;
  std::source_location where = std::source_location::current();
};

/// Appends to the graph the nodes that compute d(sum of ys)/dx for every x, by reverse accumulation (Speelpenning 1980;
/// Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). The result is part of the graph like any other edge,
/// so it can be differentiated again. An x that reads a variable, as `Variable` itself does, stands for the variable:
/// all of its reads count, `read()` too. The new nodes are named "gradients/..."; they have the device constraints of
/// the nodes they differentiate, and their place in the program: an error in one names the line that built what is
/// differentiated.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if ys and xs do not belong to one graph, or a grad_y has another element type or shape
/// than its y; Unimplemented, naming op, node and line, if an op on the way has no gradient, or the graph between xs
/// and ys has a loop.
std::vector<Gradient> gradients(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                const GradientOptions& options = {});

namespace detail {

/// The same where the ys are in a body: the first xs are what it was given, and each is that edge alone, though it read
/// a variable; the others, which are around it, have what flows to none of them.
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
