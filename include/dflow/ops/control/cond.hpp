#pragma once

#include <dflow/ops/control/body_value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace dflow {

/// One of two values: the result of `then_body()` if the condition is true when the step runs, else the result of
/// `else_body()`. Only the body that is taken runs.
///
/// ```cpp
/// auto y = df::cond(df::reduce_sum(x) > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; });
/// ```
/// Each body is called once, here. The nodes that it builds are part of the graph, and may use any edge around it.
/// Both bodies return the same: an `Output`, a `Variable` (its value), an `Operation`, a `std::tuple` of them, or
/// nothing. `cond` returns the same; for nothing it returns an `Operation` that has run the body. The nodes that a
/// body returns, and the nodes that they need, run with it; other nodes that it builds do not.
///
/// condition: bool []. The shape of a result is the common part of the shapes that both bodies give it.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument for results of different element types. InvalidArgument for a node that waits for
/// (`control_dependencies`), or reads, a node that its body does not see. All errors that the bodies throw. After an
/// error the graph is as it was before.
template <class Then, class Else>
  requires std::invocable<Then&> && std::invocable<Else&>
detail::CallValueOf<Then> cond(const Output<bool>& condition, Then&& then_body, Else&& else_body, const At& at = {}) {
  static_assert(std::same_as<detail::CallValueOf<Then>, detail::CallValueOf<Else>>,
                "both bodies of a cond return edges of the same element types");
  using V = std::remove_cvref_t<std::invoke_result_t<Then&>>;
  const auto build_it = [&](std::size_t branch) {
    return branch == 0 ? detail::body_results(then_body) : detail::body_results(else_body);
  };
  return detail::call_value<V>(detail::any_branch(condition, {"then", "else"}, build_it, "cond", at));
}

/// One of several values: the result of body number `index`; of the last body if none has this index. Else as `cond`.
///
/// ```cpp
/// auto y = df::case_of(which, std::tuple{[&] { return x; }, [&] { return x * x; }, [&] { return df::exp(x); }});
/// ```
/// index: int32 [].
template <class First, class... Bodies>
detail::CallValueOf<First> case_of(const Output<std::int32_t>& index, std::tuple<First, Bodies...> bodies,
                                   const At& at = {}) {
  static_assert((std::same_as<detail::CallValueOf<First>, detail::CallValueOf<Bodies>> && ...),
                "all bodies of a case_of return edges of the same element types");
  using V = std::remove_cvref_t<std::invoke_result_t<First&>>;
  const auto build_it = [&](std::size_t branch) {
    detail::BodyResults results;
    std::size_t i = 0;
    const auto build_if_meant = [&](auto& body) {
      if (i++ == branch) results = detail::body_results(body);
    };
    std::apply([&](auto&... body) { (build_if_meant(body), ...); }, bodies);
    return results;
  };
  constexpr std::size_t n = 1 + sizeof...(Bodies);
  return detail::call_value<V>(detail::any_branch(index, detail::numbered_branches(n), build_it, "case", at));
}

}  // namespace dflow
