#pragma once

#include <dflow/core/dtype.hpp>

#include <concepts>
#include <string>
#include <type_traits>

namespace dflow::detail {

/// A number that may stand for a scalar of element type T: not one with a fraction where T is an integer, and only bool
/// where T is bool.
template <class V, class T>
concept LiteralFor =
    std::same_as<V, T> || (std::is_arithmetic_v<V> && !std::same_as<V, bool> && !std::same_as<T, bool> &&
                           !std::same_as<T, std::string> && (std::integral<V> || !std::integral<T>));

template <Element T, class V>
constexpr T convert_literal(const V& value) {
  if constexpr (is_complex_element<T> && !std::same_as<T, V>) {
    return T(static_cast<typename T::value_type>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace dflow::detail
