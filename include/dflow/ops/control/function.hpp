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
  /// The shapes of the arguments as far as the body knows them. None, or one for each.
  std::vector<PartialShape> shapes = {};
  /// If true, the body's nodes replace each call in a step: they run in parallel, and passes see them beside all other
  /// nodes. If false, a call is one node. The results are the same. A call stays one node if its body would become
  /// more nodes than `lower_calls` makes of one call.
  bool is_inlined = false;
};

struct RecursiveFunctionOptions {
  /// The shapes of the arguments as far as all calls have them in common. None, or one for each.
  std::vector<PartialShape> shapes = {};
  /// The shapes of the results, likewise.
  std::vector<PartialShape> result_shapes = {};
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

  /// One node that runs the body. Errors: InvalidArgument for an argument of another graph, or an argument with a
  /// shape that does not fit the declared one.
  Result operator()(const Arguments&... arguments, const At& at = {}) const {
    const std::vector<AnyOutput> given{arguments...};
    return detail::call_value<Result>(handle_.call(given, at));
  }

  const std::string& name() const noexcept { return handle_.name; }

  /// The same function. Calls of the returned value are inlined, as by `FunctionOptions::is_inlined`.
  Function inlined() const {
    Function result = *this;
    result.handle_.is_inlined = true;
    return result;
  }

 private:
  detail::FunctionHandle handle_;
};

/// The same function, for calls that are inlined although its other calls are not:
///
/// ```cpp
/// auto r = df::inlined(norm)(a, b);
/// ```
/// See `FunctionOptions::is_inlined`; calls of a function that calls itself stay calls.
template <class Signature>
Function<Signature> inlined(const Function<Signature>& function) {
  return function.inlined();
}

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

/// The element types of a function's results, in order.
template <class V>
struct ResultTypes;
template <class V>
  requires std::derived_from<V, AnyOutput>
struct ResultTypes<V> {
  static void add(std::vector<DType>& types) {
    if constexpr (requires { typename V::element_type; }) {
      types.push_back(dtype_of<typename V::element_type>);
    } else {
      types.push_back(DType::invalid);
    }
  }
};
template <>
struct ResultTypes<Operation> {
  static void add(std::vector<DType>&) {}
};
template <class... Vs>
struct ResultTypes<std::tuple<Vs...>> {
  static void add(std::vector<DType>& types) { (ResultTypes<Vs>::add(types), ...); }
};

template <class Signature>
struct RecursionOf;
template <class Result, class... Arguments>
struct RecursionOf<Result(Arguments...)> {
  static Recursion known(const RecursiveFunctionOptions& options) {
    std::vector<DType> result_types;
    ResultTypes<Result>::add(result_types);
    return {{dtype_of<typename Arguments::element_type>...}, options.shapes, result_types, options.result_shapes};
  }
  template <class F>
  static BodyResults build(F& body, const FunctionHandle& self, std::span<const AnyOutput> arguments) {
    using Given = BodyValue<
        std::remove_cvref_t<std::invoke_result_t<F&, const Function<Result(Arguments...)>&, const Arguments&...>>>;
    static_assert(std::same_as<typename Given::Type, Result>, "the body returns what the signature says");
    const Function<Result(Arguments...)> callable(self);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto bound = [&](const Arguments&... given) { return body(callable, given...); };
      return body_results(bound, Arguments(arguments[I])...);
    }(std::index_sequence_for<Arguments...>{});
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
/// A body may return and read the same as a body of `cond`; its parameters are `Output<T>`. All calls share the body,
/// so they all run on one device. The body knows the arguments' shapes only as far as `options` declare them. The
/// results of a call have the shapes that follow from its arguments.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if the number of shapes is not the number of arguments; else as `cond`.
template <class F>
auto function(Graph& graph, std::string_view name, F body, const FunctionOptions& options = {}, const At& at = {}) {
  using Of = detail::FunctionOf<F, typename detail::Callable<F>::Arguments>;
  return typename Of::Type(detail::define_function(
      *graph.store(), name, Of::dtypes(), options.shapes,
      [&](std::span<const AnyOutput> arguments) { return Of::build(body, arguments); }, at, {options.is_inlined}));
}

/// A function that calls itself: `body` gets the function before its arguments. A branch has to end the recursion.
///
/// ```cpp
/// auto fibonacci = df::recursive_function<df::Output<float>(df::Output<float>)>(
///     graph, "fibonacci", [](const auto& self, df::Output<float> n) {
///       return df::cond(n < 2.0f, [&] { return n; }, [&] { return self(n - 1.0f) + self(n - 2.0f); });
///     });
/// ```
/// All else is as for `function`, with one difference. If `body` reads anything that is built outside of it, dflow
/// calls `body` again and replaces the graph that the first call built: so let `body` do nothing but build. Arguments
/// and results are `Output<T>`; the result may also be a tuple of them. The results of a call have the shapes that
/// `options` declare.
///
/// Calls nest as deep as `max_call_depth` on one device; deeper calls end the step with ResourceExhausted. The
/// gradient is a function that calls itself too. At every level it computes the results of the levels below again.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument if the number of shapes is not the number of arguments or results, or if a result does not
/// have its declared shape; else as `function`.
template <class Signature, class F>
Function<Signature> recursive_function(Graph& graph, std::string_view name, F body,
                                       const RecursiveFunctionOptions& options = {}, const At& at = {}) {
  using Of = detail::RecursionOf<Signature>;
  return Function<Signature>(detail::define_recursion(
      *graph.store(), name, Of::known(options),
      [&](const detail::FunctionHandle& self, std::span<const AnyOutput> arguments) {
        return Of::build(body, self, arguments);
      },
      at));
}

/// The same as an entry of the graph's table of functions. The function has exactly this name, from the root of the
/// graph, in any name scope. Everything that builds on the graph finds it by this name (`find_function`), and so do
/// nodes that call it in an imported GraphDef. The table is the graph's collection "functions": it is saved, copied
/// and merged with the graph. A graph of functions alone is therefore a library (`merge(graph, library)`). A session
/// uses the table of its graph, as it grows.
///
/// Errors: also AlreadyExists if the graph has a node, or a name scope, of that name.
template <class F>
auto register_function(Graph& graph, std::string_view name, F body, const FunctionOptions& options = {},
                       const At& at = {}) {
  using Of = detail::FunctionOf<F, typename detail::Callable<F>::Arguments>;
  return typename Of::Type(detail::register_function(
      *graph.store(), name, Of::dtypes(), options.shapes,
      [&](std::span<const AnyOutput> arguments) { return Of::build(body, arguments); }, at, {options.is_inlined}));
}

namespace detail {

template <class Signature>
struct FindFunction;
template <class Result, class... Arguments>
struct FindFunction<Result(Arguments...)> {
  static FunctionHandle in(GraphStore& graph, std::string_view name, const At& at) {
    std::vector<DType> arguments, results;
    (ResultTypes<Arguments>::add(arguments), ...);
    ResultTypes<Result>::add(results);
    return find_function(graph, name, arguments, results, at);
  }
};

}  // namespace detail

/// A function of the graph by its name: a registered, merged, imported or any other function.
///
/// ```cpp
/// using Norm = df::Output<float>(df::Output<float>, df::Output<float>);
/// auto r = df::find_function<Norm>(graph, "norm")(a, b);
/// ```
/// Errors: NotFound if the graph has no function of that name; InvalidArgument, with both signatures, if its arguments
/// or results have other element types, or while its body is being built.
template <class Signature>
Function<Signature> find_function(Graph& graph, std::string_view name, const At& at = {}) {
  return Function<Signature>(detail::FindFunction<Signature>::in(*graph.store(), name, at));
}

}  // namespace dflow
