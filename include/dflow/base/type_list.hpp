#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace dflow {

/// A list of types as a value: `TypeList<float, double>{}`.
template <class... Ts>
struct TypeList {
  static constexpr std::size_t size = sizeof...(Ts);
};

/// True if T is one of the list's types.
template <class T, class List>
inline constexpr bool contains_v = false;
template <class T, class... Ts>
inline constexpr bool contains_v<T, TypeList<Ts...>> = (std::is_same_v<T, Ts> || ...);

namespace detail {
template <class T, class... Ts>
consteval std::size_t index_of() {
  static_assert((std::is_same_v<T, Ts> || ...), "the type is not in the list");
  std::size_t index = 0;
  (void)((std::is_same_v<T, Ts> || (++index, false)) || ...);
  return index;
}
}  // namespace detail

/// The position of T's first occurrence; does not compile if T is not in the list.
template <class T, class List>
inline constexpr std::size_t index_of_v = 0;
template <class T, class... Ts>
inline constexpr std::size_t index_of_v<T, TypeList<Ts...>> = detail::index_of<T, Ts...>();

/// True if no type occurs twice.
template <class List>
inline constexpr bool is_unique_v = true;
template <class... Ts>
inline constexpr bool is_unique_v<TypeList<Ts...>> = [] {
  std::size_t equal_pairs = 0;
  [[maybe_unused]] const auto count_equal = [&]<class T>(std::type_identity<T>) {
    equal_pairs += (std::size_t{std::is_same_v<T, Ts>} + ... + 0);
  };
  (count_equal(std::type_identity<Ts>{}), ...);
  return equal_pairs == sizeof...(Ts);
}();

template <class... As, class... Bs>
consteval TypeList<As..., Bs...> operator+(TypeList<As...>, TypeList<Bs...>) {
  return {};
}

/// The lists' types one after the other.
template <class... Lists>
using concat_t = decltype((TypeList<>{} + ... + Lists{}));

/// Calls `f.template operator()<T>()` for each type in order: `for_each_type<L>([]<class T>() { ... })`.
template <class List, class F>
constexpr void for_each_type(F&& f) {
  // A list instead of a fold: clang accepts at most 256 operands in a fold.
  [&]<class... Ts>(TypeList<Ts...>) {
    static_cast<void>(std::initializer_list<int>{(static_cast<void>(f.template operator()<Ts>()), 0)...});
  }(List{});
}

namespace detail {
template <std::size_t I, class T>
struct IndexedType {};
template <class Indices, class... Ts>
struct IndexedTypes;
template <std::size_t... Is, class... Ts>
struct IndexedTypes<std::index_sequence<Is...>, Ts...> : IndexedType<Is, Ts>... {};
template <std::size_t I, class T>
std::type_identity<T> type_at(const IndexedType<I, T>&);
template <std::size_t I, class List>
struct ElementOf;
template <std::size_t I, class... Ts>
struct ElementOf<I, TypeList<Ts...>>
    : decltype(type_at<I>(std::declval<IndexedTypes<std::make_index_sequence<sizeof...(Ts)>, Ts...>>())) {};
}  // namespace detail

/// The type at position I.
template <std::size_t I, class List>
using element_t = typename detail::ElementOf<I, List>::type;

}  // namespace dflow
