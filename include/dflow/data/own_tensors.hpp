#pragma once

#include <dflow/core/any_tensor.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow::data {

// Elements of a dataset are values: writing into one never reaches another. A tensor is a handle, and a source, a cache
// or another element may hold the same elements. Hence an element is made the owner of its tensors before anybody may
// write into it.

namespace detail {

/// Gives a tensor new elements of the same values, unless nothing else holds its elements.
void unshare(AnyTensor& tensor);

/// A class that says by a function `tensors_of(element)` in its own namespace which tensors it holds: as a tuple of
/// references to members, `std::tie(element.image, element.mask)`.
template <class E>
concept NamesTensors = requires(E& element) {
  tensors_of(element);
  requires std::tuple_size<decltype(tensors_of(element))>::value > 0;
};

/// A standard container.
template <class E>
concept Container = !NamesTensors<E> && requires {
  typename E::value_type;
  typename E::allocator_type;
  requires !std::is_same_v<typename E::value_type, E>;
};

/// True for a tensor, and for a type that holds tensors by value, as far as it can be known.
template <class E>
inline constexpr bool holds_tensors = !std::is_const_v<E> && std::is_base_of_v<AnyTensor, E>;
template <NamesTensors E>
inline constexpr bool holds_tensors<E> = true;
template <Container E>
inline constexpr bool holds_tensors<E> = holds_tensors<typename E::value_type>;
template <class A, class B>
inline constexpr bool holds_tensors<std::pair<A, B>> = holds_tensors<A> || holds_tensors<B>;
template <class... Es>
inline constexpr bool holds_tensors<std::tuple<Es...>> = (holds_tensors<Es> || ...);
template <class E, std::size_t n>
inline constexpr bool holds_tensors<std::array<E, n>> = holds_tensors<E>;
template <class E>
inline constexpr bool holds_tensors<std::optional<E>> = holds_tensors<E>;

template <class E>
inline constexpr bool is_optional = false;
template <class E>
inline constexpr bool is_optional<std::optional<E>> = true;

/// Makes an element the owner of all tensors that it holds. Errors: ResourceExhausted if memory runs out.
template <class E>
void unshare_element(E& element) {
  [[maybe_unused]] const auto each = [](auto&... members) { (detail::unshare_element(members), ...); };
  if constexpr (!holds_tensors<E>) {
    return;
  } else if constexpr (std::is_base_of_v<AnyTensor, E>) {
    detail::unshare(element);
  } else if constexpr (NamesTensors<E>) {
    std::apply(each, tensors_of(element));
  } else if constexpr (is_optional<E>) {
    if (element) detail::unshare_element(*element);
  } else if constexpr (Container<E>) {
    for (auto& member : element) detail::unshare_element(member);
  } else {
    std::apply(each, element);
  }
}

}  // namespace detail

}  // namespace dflow::data
