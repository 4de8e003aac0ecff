#pragma once

#include <concepts>
#include <limits>

namespace dflow {

/// The number, but NaN without a sign. Some processors give 0 / 0 a sign, which `printf` and `std::to_chars` write as
/// "-nan". A number goes through this function before it is written for people.
template <std::floating_point T>
constexpr T plain_nan(T value) noexcept {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

}  // namespace dflow
