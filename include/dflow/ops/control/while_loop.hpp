#pragma once

#include <dflow/ops/control/body_value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

struct WhileOptions {
  /// The shape that each variable has in all iterations, if this is not the shape of its first value: for a variable
  /// that grows, `{df::dynamic, 3}`. None, or one for each.
  std::vector<PartialShape> shapes = {};
  /// At most so many iterations are under way at once, if a session lowers control flow (`PassOptions`); at least 1.
  /// Otherwise iterations run one after the other.
  std::int64_t parallel_iterations = 10;
  /// The memory, in bytes on each device, for values that the loop's gradient keeps of the iterations. Older values go
  /// to a file in the directory for temporary files (`KeptMemory`); the gradient's loop reads them from it. -1: memory
  /// holds all. Values kept by loops in the body count too. Small values (512 bytes), strings, and the lists
  /// themselves do not. A loop with this limit runs one iteration after the other. A step with its gradient ends with
  /// ResourceExhausted if the file finds no room, and with Unimplemented on a device with a memory of its own.
  std::int64_t max_kept_bytes = -1;
};

namespace detail {

template <class... Vs>
using LoopVariables = std::tuple<typename BodyValue<Vs>::Type...>;

template <class... Vs, std::size_t... I>
LoopVariables<Vs...> loop_variables(std::span<const AnyOutput> arguments, std::index_sequence<I...>) {
  return {typename BodyValue<Vs>::Type(arguments[I])...};
}

}  // namespace detail

/// Calls `body(variables...)` as long as `condition(variables...)` is true when the step runs, and returns the
/// variables' last values.
///
/// ```cpp
/// auto [i, total] = df::while_loop([&](auto i, auto) { return i < limit; },
///                                  [&](auto i, auto total) { return std::tuple{i + 1, total + x}; },
///                                  std::tuple{df::constant(graph, 0), zero});
/// ```
/// Both are called once, here, with edges that stand for the variables. The nodes that they build are part of the
/// graph, and may use any edge around them. The condition returns a bool []. The body returns a tuple of the next
/// values, of the same element types as the first ones.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument, naming the variable, if its next value may have another shape than the variable (or than
/// `WhileOptions::shapes` declares); else as `cond`.
template <class Condition, class Body, class... Vs>
detail::LoopVariables<Vs...> while_loop(Condition&& condition, Body&& body, const std::tuple<Vs...>& first,
                                        const WhileOptions& options = {}, const At& at = {}) {
  static_assert(std::invocable<Condition&, const typename detail::BodyValue<Vs>::Type&...> &&
                    std::invocable<Body&, const typename detail::BodyValue<Vs>::Type&...>,
                "the condition and the body of a while_loop take one edge for each of its variables");
  constexpr auto indices = std::index_sequence_for<Vs...>();
  const auto call = [&](auto& build, std::span<const AnyOutput> arguments) {
    return std::apply([&](const auto&... variables) { return detail::body_results(build, variables...); },
                      detail::loop_variables<Vs...>(arguments, indices));
  };
  using Next = std::remove_cvref_t<std::invoke_result_t<Body&, const typename detail::BodyValue<Vs>::Type&...>>;
  static_assert(std::same_as<typename detail::BodyValue<Next>::Type, detail::LoopVariables<Vs...>>,
                "the body of a while_loop returns a tuple of the variables' next values, of their element types");
  detail::BodyResults initial;
  detail::BodyValue<std::tuple<Vs...>>::add(first, initial);
  const BuiltNode node = detail::any_loop(
      initial.edges, [&](std::span<const AnyOutput> arguments) { return call(condition, arguments); },
      [&](std::span<const AnyOutput> arguments) { return call(body, arguments); },
      {options.shapes, options.parallel_iterations, options.max_kept_bytes}, at);
  return detail::call_value<std::tuple<Vs...>>(node);
}

/// The same with one variable.
template <class Condition, class Body, detail::IsBodyValue V>
typename detail::BodyValue<V>::Type while_loop(Condition&& condition, Body&& body, const V& first,
                                               const WhileOptions& options = {}, const At& at = {}) {
  static_assert(std::invocable<Condition&, const typename detail::BodyValue<V>::Type&> &&
                    std::invocable<Body&, const typename detail::BodyValue<V>::Type&>,
                "the condition and the body of a while_loop take one edge for each of its variables");
  const auto next = [&](const auto& variable) { return std::tuple{body(variable)}; };
  return std::get<0>(while_loop(condition, next, std::tuple<V>{first}, options, at));
}

}  // namespace dflow
