#pragma once

#include <dflow/data/item.hpp>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow::data {

namespace detail {

template <class F, class E>
inline constexpr bool takes_members = false;
template <class F, class A, class B>
inline constexpr bool takes_members<F, std::pair<A, B>> = std::is_invocable_v<F, A&, B&>;
template <class F, class... Es>
inline constexpr bool takes_members<F, std::tuple<Es...>> = std::is_invocable_v<F, Es&...>;
template <class F, class A, class B>
inline constexpr bool takes_members<F, const std::pair<A, B>> = std::is_invocable_v<F, const A&, const B&>;
template <class F, class... Es>
inline constexpr bool takes_members<F, const std::tuple<Es...>> = std::is_invocable_v<F, const Es&...>;

/// A function that can be called with an element of type E: with the element as it is, or with its members.
template <class F, class E>
concept FunctionOf = std::is_invocable_v<const F&, E&> || takes_members<const F&, E>;

template <class F>
struct ParametersOf {
  using type = TypeList<>;
};
template <class R, class... Ps, bool is_noexcept>
struct ParametersOf<R (*)(Ps...) noexcept(is_noexcept)> {
  using type = TypeList<Ps...>;
};
template <class C, class R, class... Ps, bool is_noexcept>
struct ParametersOf<R (C::*)(Ps...) const noexcept(is_noexcept)> {
  using type = TypeList<Ps...>;
};

template <class M>
concept OneTensor = MadeOfTensors<M> && Parts<M>::count == 1;

struct OfRival {};

/// A function of const references beside F. For arguments that are no constants it is called if F takes them as
/// `const auto&` or as `auto`, and F is called if it takes them as `auto&` or `auto&&`. Hence F is compiled for nothing
/// that it is not called with.
template <class F, class... Ms>
struct Rival : F {
  using F::operator();
  OfRival operator()(const Ms&...) const;
};
template <class F, class... Ms>
using ResultBesideRival = decltype(std::declval<const Rival<F, Ms...>&>()(std::declval<Ms&>()...));

/// The types of the parameters of F, an object that can be called with a `Ms&...`. An empty list if they cannot be
/// known: F is overloaded, or a template of other arguments than single tensors.
template <class F, class... Ms>
constexpr auto parameters() {
  if constexpr (std::is_pointer_v<F>) {
    return typename ParametersOf<F>::type();
  } else if constexpr (requires { &F::operator(); }) {
    return typename ParametersOf<decltype(&F::operator())>::type();
  } else if constexpr (std::is_class_v<F> && !std::is_final_v<F> && (OneTensor<Ms> && ...)) {
    if constexpr (!requires { typename ResultBesideRival<F, Ms...>; }) {
      return TypeList<>();
    } else if constexpr (!std::is_same_v<ResultBesideRival<F, Ms...>, OfRival>) {
      return std::conditional_t<sizeof...(Ms) == 1, TypeList<Ms&...>, TypeList<>>();
    } else if constexpr (requires { &F::template operator()<Ms...>; }) {
      return typename ParametersOf<decltype(&F::template operator()<Ms...>)>::type();
    } else {
      return TypeList<>();
    }
  } else {
    return TypeList<>();
  }
}

template <class P, class M>
inline constexpr bool is_reference_to = std::is_reference_v<P> && std::is_base_of_v<std::remove_cvref_t<P>, M>;

/// A function that takes an M, which is no constant, as a P may write into the tensors of M: it has no const reference
/// to it. A value is a handle to the same elements.
template <class P, class M>
inline constexpr bool may_write =
    holds_tensors<M> && !(is_reference_to<P, M> && std::is_const_v<std::remove_reference_t<P>>);

/// The same for an M that is a constant.
template <class P, class M>
inline constexpr bool may_write_constant = holds_tensors<M> && !is_reference_to<P, M>;

template <class F, class... Ms>
void unshare_written(Ms&... arguments) {
  [&]<class... Ps>(TypeList<Ps...>) {
    if constexpr (sizeof...(Ps) == sizeof...(Ms)) {
      ((may_write<Ps, Ms> ? detail::unshare_element(arguments) : void()), ...);
    } else {
      (detail::unshare_element(arguments), ...);
    }
  }(detail::parameters<F, Ms...>());
}

template <class F, class... Ms>
constexpr bool writes_constants() {
  if constexpr ((holds_tensors<Ms> || ...)) {
    return []<class... Ps>(TypeList<Ps...>) {
      if constexpr (sizeof...(Ps) == sizeof...(Ms)) {
        return (may_write_constant<Ps, Ms> || ...);
      } else {
        return true;
      }
    }(detail::parameters<F, Ms...>());
  } else {
    return false;
  }
}

/// True if F may write into the tensors of a const element of type E, by handles that it takes.
template <class F, class E>
inline constexpr bool may_write_element = writes_constants<F, E>();
template <class F, class A, class B>
  requires(!std::is_invocable_v<const F&, const std::pair<A, B>&>)
inline constexpr bool may_write_element<F, std::pair<A, B>> = writes_constants<F, A, B>();
template <class F, class... Es>
  requires(!std::is_invocable_v<const F&, const std::tuple<Es...>&>)
inline constexpr bool may_write_element<F, std::tuple<Es...>> = writes_constants<F, Es...>();

template <class E, FunctionOf<E> F>
decltype(auto) invoke_with(const F& f, E& element) {
  if constexpr (std::is_invocable_v<const F&, E&>) {
    return std::invoke(f, element);
  } else {
    return std::apply(f, element);
  }
}
template <class E, class F>
using Called = std::remove_cvref_t<decltype(detail::invoke_with<E, F>(std::declval<const F&>(), std::declval<E&>()))>;

/// Calls a function with an element of its own. The tensors that the function may write belong to the element before:
/// those that it takes by const reference stay shared.
template <class E, FunctionOf<E> F>
decltype(auto) call(const F& f, E& element) {
  if constexpr (holds_tensors<E>) {
    if constexpr (std::is_invocable_v<const F&, E&>) {
      detail::unshare_written<F>(element);
    } else {
      std::apply([](auto&... members) { detail::unshare_written<F>(members...); }, element);
    }
  }
  return detail::invoke_with<E, F>(f, element);
}

/// Asks a function about an element that others use afterwards. A function that may write into it gets a copy.
template <class R, class E, FunctionOf<const E> F>
R ask(const F& f, const E& element) {
  if constexpr (may_write_element<F, E> && CopyableElement<E>) {
    E copy(element);
    detail::unshare_element(copy);
    return static_cast<R>(detail::invoke_with<const E, F>(f, copy));
  } else {
    return static_cast<R>(detail::invoke_with<const E, F>(f, element));
  }
}

}  // namespace detail

}  // namespace dflow::data
