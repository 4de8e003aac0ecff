#pragma once

#include <dflow/ops/control/function_builders.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Turns the value that a lambda returns into results of a function, and results of a call into values again. The
/// value is an edge of any kind, an operation, a tuple of them, or nothing.
template <class V>
struct BodyValue;

template <class V>
  requires std::derived_from<V, AnyOutput>
struct BodyValue<V> {
  static auto typed_or_erased() {
    if constexpr (requires { typename V::element_type; }) {
      return Output<typename V::element_type>();
    } else {
      return AnyOutput();
    }
  }
  using Type = decltype(typed_or_erased());

  static void add(const V& value, BodyResults& to) { to.edges.push_back(value); }
  static Type of(const BuiltNode& node, int& next) {
    if constexpr (std::same_as<Type, AnyOutput>) {
      return node.output(next++);
    } else {
      return Type::unchecked(node.output(next++));
    }
  }
};

template <>
struct BodyValue<Operation> {
  using Type = Operation;
  static void add(const Operation& value, BodyResults& to) { to.targets.push_back(value); }
  static Type of(const BuiltNode& node, int&) { return node.operation(); }
};

template <class... Vs>
struct BodyValue<std::tuple<Vs...>> {
  using Type = std::tuple<typename BodyValue<Vs>::Type...>;
  static void add(const std::tuple<Vs...>& values, BodyResults& to) {
    std::apply([&](const Vs&... each) { (BodyValue<Vs>::add(each, to), ...); }, values);
  }
  static Type of(const BuiltNode& node, int& next) { return Type{BodyValue<Vs>::of(node, next)...}; }
};

template <class V>
concept IsBodyValue = requires { typename BodyValue<V>::Type; };

/// The results of `build()`, of any type that it may return.
template <class F, class... Args>
BodyResults body_results(F& build, const Args&... arguments) {
  BodyResults results;
  using V = std::remove_cvref_t<std::invoke_result_t<F&, const Args&...>>;
  if constexpr (std::is_void_v<V>) {
    build(arguments...);
  } else {
    static_assert(IsBodyValue<V>, "a body returns an edge, an operation, or a std::tuple of these");
    BodyValue<V>::add(build(arguments...), results);
  }
  return results;
}

template <class V>
struct CallValue {
  static_assert(IsBodyValue<V>,
                "a body returns an edge, an operation, or a std::tuple of these; df::constant(graph, 1.0f) "
                "is the edge of a number");
  using Type = typename BodyValue<V>::Type;
};
template <>
struct CallValue<void> {
  using Type = Operation;
};

/// The value of a call of functions that return V.
template <class V>
typename CallValue<V>::Type call_value(const BuiltNode& node) {
  if constexpr (std::is_void_v<V>) {
    return node.operation();
  } else {
    int next = 0;
    return BodyValue<V>::of(node, next);
  }
}

template <class F, class... Args>
using CallValueOf = typename CallValue<std::remove_cvref_t<std::invoke_result_t<F&, const Args&...>>>::Type;

}  // namespace dflow::detail
