#pragma once

#include <dflow/ops/control/body_value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace dflow {

/// One of two values: what `then_body()` builds where the condition is true when the step runs, else what `else_body()`
/// builds. Only the one that is taken runs.
///
/// ```cpp
/// auto y = df::cond(df::reduce_sum(x) > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; });
/// ```
/// A body is called once, here, and what it builds is part of the graph: it may use any edge around it. Both return the
/// same: an `Output`, a `Variable` (its value), an `Operation`, a `std::tuple` of these, or nothing; so does `cond`,
/// which returns an `Operation` that has run the body for nothing. What a body returns runs with it, and what that
/// needs; what else it builds does not.
///
/// condition: bool []. The shape of a result is what the shapes of both bodies' have in common.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument for results of different element types, and for what waits for (`control_dependencies`) or
/// reads what a body does not see; whatever the bodies throw. The graph is as it was before, then.
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

/// One of several values: what body number `index` builds; the last one's for an index that none has. Else as `cond`.
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
