#pragma once

#include <dflow/base/config.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

/// Arithmetic on sizes that cannot wrap. `try_*` return nothing on overflow; `checked_*` and `narrow` throw
/// InvalidArgument that names the operands.
namespace dflow {

template <class T>
concept CheckedInteger = std::integral<T> && !std::same_as<T, bool>;

namespace detail {
[[noreturn]] void throw_overflow(const char* operation, std::int64_t a, std::int64_t b);
[[noreturn]] void throw_overflow(const char* operation, std::uint64_t a, std::uint64_t b);
[[noreturn]] void throw_narrowing(std::int64_t value, int to_bits, bool to_signed);
[[noreturn]] void throw_narrowing(std::uint64_t value, int to_bits, bool to_signed);

template <class T>
using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
}  // namespace detail

template <CheckedInteger T>
constexpr std::optional<T> try_add(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <CheckedInteger T>
constexpr std::optional<T> try_sub(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <CheckedInteger T>
constexpr std::optional<T> try_mul(T a, std::type_identity_t<T> b) noexcept {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <CheckedInteger T>
constexpr T checked_add(T a, std::type_identity_t<T> b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) detail::throw_overflow("+", detail::Widest<T>(a), detail::Widest<T>(b));
  return result;
}

template <CheckedInteger T>
constexpr T checked_sub(T a, std::type_identity_t<T> b) {
  T result{};
  if (__builtin_sub_overflow(a, b, &result)) detail::throw_overflow("-", detail::Widest<T>(a), detail::Widest<T>(b));
  return result;
}

template <CheckedInteger T>
constexpr T checked_mul(T a, std::type_identity_t<T> b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) detail::throw_overflow("*", detail::Widest<T>(a), detail::Widest<T>(b));
  return result;
}

/// The number of elements of a box with the extents; 1 for no extents. If any extent is 0, the result is 0 for all
/// values of the others.
/// Errors: InvalidArgument if an extent is negative or the product does not fit.
std::int64_t checked_product(std::span<const std::int64_t> extents);

/// The same without throwing: nothing if an extent is negative or the product does not fit.
std::optional<std::int64_t> try_product(std::span<const std::int64_t> extents) noexcept;

/// Converts between integer types and throws where the value would change.
template <CheckedInteger To, CheckedInteger From>
constexpr To narrow(From value) {
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || ((result < To{}) != (value < From{}))) {
    detail::throw_narrowing(detail::Widest<From>(value), std::numeric_limits<To>::digits + std::is_signed_v<To>,
                            std::is_signed_v<To>);
  }
  return result;
}

}  // namespace dflow
