#pragma once

#include <dflow/ops/control/body_value.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

struct FunctionOptions {
  /// What is known of the arguments' shapes in the body. None, or one for each.
  std::vector<PartialShape> shapes = {};
};

template <class Signature>
class Function;

/// A function of the graph, by the element types of its arguments and results.
///
/// Thread safety: a value type; calling it builds, see Graph.
template <class Result, class... Arguments>
class Function<Result(Arguments...)> {
 public:
  explicit Function(detail::FunctionHandle handle) : handle_(std::move(handle)) {}

  /// One node that runs the body. Errors: InvalidArgument for an argument of another graph, or whose shape cannot be
  /// the one that was declared.
  Result operator()(const Arguments&... arguments, const At& at = {}) const {
    const std::vector<AnyOutput> given{arguments...};
    return detail::call_value<Result>(handle_.call(given, at));
  }

  const std::string& name() const noexcept { return handle_.name; }

 private:
  detail::FunctionHandle handle_;
};

namespace detail {

/// The types that a callable with one signature takes, without references.
template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class R, class... As>
struct Callable<R (*)(As...)> {
  using Arguments = std::tuple<std::remove_cvref_t<As>...>;
};
template <class C, class R, class... As>
struct Callable<R (C::*)(As...) const> : Callable<R (*)(As...)> {};
template <class C, class R, class... As>
struct Callable<R (C::*)(As...)> : Callable<R (*)(As...)> {};

template <class F, class Arguments>
struct FunctionOf;
template <class F, class... As>
struct FunctionOf<F, std::tuple<As...>> {
  using Type = Function<CallValueOf<F, As...>(As...)>;
  static constexpr std::size_t num_arguments = sizeof...(As);
  static std::vector<DType> dtypes() { return {dtype_of<typename As::element_type>...}; }
  static BodyResults build(F& body, std::span<const AnyOutput> arguments) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return body_results(body, As(arguments[I])...);
    }(std::index_sequence_for<As...>{});
  }
};

}  // namespace detail

/// A named part of the graph that can be called: `body` is called once, here, with edges that stand for the arguments.
///
/// ```cpp
/// auto norm = df::function(graph, "norm",
///                          [](df::Output<float> x, df::Output<float> y) { return df::sqrt(x * x + y * y); });
/// auto r = norm(a, b);
/// ```
/// What a body may return and see is what one of `cond` may; the parameters are `Output<T>`. Calls share the body, so
/// all of them are on one device. Of the arguments' shapes the body knows what `options` say; the results of a call
/// have the shapes that its arguments give them.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument for shapes that are not as many as the arguments; else as `cond`.
template <class F>
auto function(Graph& graph, std::string_view name, F body, const FunctionOptions& options = {}, const At& at = {}) {
  using Of = detail::FunctionOf<F, typename detail::Callable<F>::Arguments>;
  return typename Of::Type(detail::define_function(
      *graph.store(), name, Of::dtypes(), options.shapes,
      [&](std::span<const AnyOutput> arguments) { return Of::build(body, arguments); }, at));
}

}  // namespace dflow
