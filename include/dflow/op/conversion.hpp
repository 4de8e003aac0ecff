#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/op/scalar_math.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dflow::detail {

/// One element converted as `cast` says. Included by units that nvcc compiles.
template <class To, class From>
DFLOW_FN constexpr To converted(From x) {
  if constexpr (is_complex_element<From>) {
    if constexpr (is_complex_element<To>) {
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    } else if constexpr (std::same_as<To, bool>) {
      return x != From(0);
    } else {
      return converted<To>(x.real());
    }
  } else if constexpr (is_complex_element<To>) {
    return To(converted<typename To::value_type>(x));
  } else if constexpr (std::same_as<To, bool>) {
    return x != From(0);
  } else if constexpr (math::HalfPrecision<From> && !std::same_as<From, To>) {
    return converted<To>(static_cast<float>(x));
  } else if constexpr (std::floating_point<From> && std::integral<To> &&
                       std::numeric_limits<To>::digits <= std::numeric_limits<From>::digits && sizeof(To) <= 4) {
    // Both bounds are numbers of From: choices without branches, which compilers vectorise.
    constexpr From lowest = From(std::numeric_limits<To>::lowest()), highest = From(std::numeric_limits<To>::max());
    From kept = x == x ? x : From(0);
    kept = kept < lowest ? lowest : kept;
    kept = kept > highest ? highest : kept;
    using Number = std::conditional_t<(sizeof(To) < 4), std::int32_t, To>;
    return static_cast<To>(static_cast<Number>(kept));
  } else if constexpr (std::floating_point<From> && std::integral<To>) {
    // Both bounds are powers of two, which From holds exactly; the larger one is the first number too large.
    // NOLINTNEXTLINE(bugprone-integer-division): rounded down on purpose
    constexpr From above = From(std::numeric_limits<To>::max() / 2 + 1) * 2;
    constexpr From lowest = From(std::numeric_limits<To>::lowest());
    constexpr To highest_result = std::numeric_limits<To>::max(), lowest_result = std::numeric_limits<To>::lowest();
    if (x >= above) return highest_result;
    if (x <= lowest) return lowest_result;
    return x == x ? static_cast<To>(x) : To(0);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace dflow::detail
