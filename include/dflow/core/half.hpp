#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace dflow {

/// IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits): a storage type. Arithmetic converts to float, computes,
/// and rounds to the nearest half, ties to even; overflow gives infinity, and subnormals and NaNs are kept.
///
/// From double and wide integers it rounds by way of float, hence twice.
///
/// Thread safety: a value type.
class Half {
 public:
  constexpr Half() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  DFLOW_FN constexpr explicit Half(N value) noexcept : bits_(round_from(static_cast<float>(value))) {}

  DFLOW_FN constexpr operator float() const noexcept { return widen(bits_); }

  DFLOW_FN constexpr std::uint16_t bits() const noexcept { return bits_; }
  DFLOW_FN static constexpr Half from_bits(std::uint16_t bits) noexcept {
    Half half{};
    half.bits_ = bits;
    return half;
  }

  DFLOW_FN constexpr Half operator-() const noexcept { return from_bits(static_cast<std::uint16_t>(bits_ ^ 0x8000u)); }
  DFLOW_FN constexpr Half operator+() const noexcept { return *this; }

  DFLOW_FN friend constexpr Half operator+(Half a, Half b) noexcept { return Half(float(a) + float(b)); }
  DFLOW_FN friend constexpr Half operator-(Half a, Half b) noexcept { return Half(float(a) - float(b)); }
  DFLOW_FN friend constexpr Half operator*(Half a, Half b) noexcept { return Half(float(a) * float(b)); }
  DFLOW_FN friend constexpr Half operator/(Half a, Half b) noexcept { return Half(float(a) / float(b)); }
  DFLOW_FN constexpr Half& operator+=(Half b) noexcept { return *this = *this + b; }
  DFLOW_FN constexpr Half& operator-=(Half b) noexcept { return *this = *this - b; }
  DFLOW_FN constexpr Half& operator*=(Half b) noexcept { return *this = *this * b; }
  DFLOW_FN constexpr Half& operator/=(Half b) noexcept { return *this = *this / b; }

  DFLOW_FN friend constexpr bool operator==(Half a, Half b) noexcept { return float(a) == float(b); }
  DFLOW_FN friend constexpr bool operator!=(Half a, Half b) noexcept { return float(a) != float(b); }
  DFLOW_FN friend constexpr bool operator<(Half a, Half b) noexcept { return float(a) < float(b); }
  DFLOW_FN friend constexpr bool operator<=(Half a, Half b) noexcept { return float(a) <= float(b); }
  DFLOW_FN friend constexpr bool operator>(Half a, Half b) noexcept { return float(a) > float(b); }
  DFLOW_FN friend constexpr bool operator>=(Half a, Half b) noexcept { return float(a) >= float(b); }

 private:
  // __builtin_bit_cast and not std::bit_cast, which nvcc does not call from device code without a flag.
  DFLOW_FN static constexpr float widen(std::uint16_t bits) noexcept {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x0400u) return __builtin_bit_cast(float, sign | ((magnitude << 13) + 0x38000000u));
    // Subnormal or zero: the fraction counts units of 2^-24, which float holds exactly.
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }

  DFLOW_FN static constexpr std::uint16_t round_from(float value) noexcept {
    const auto word = __builtin_bit_cast(std::uint32_t, value);
    const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // a quiet NaN with the payload's upper bits
    } else if (magnitude >= 0x477ff000u) {
      half = 0x7c00u;  // 65520 and more round to infinity
    } else if (magnitude >= 0x38800000u) {
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    } else {
      // Adding 0.5 puts the units of 2^-24 into the lowest bits of the sum, rounded to nearest even by the addition.
      const float sum = __builtin_bit_cast(float, magnitude) + 0.5f;
      half = __builtin_bit_cast(std::uint32_t, sum) - 0x3f000000u;
    }
    return static_cast<std::uint16_t>(sign | half);
  }

  std::uint16_t bits_;
};

static_assert(std::is_trivially_copyable_v<Half> && std::is_trivially_default_constructible_v<Half> &&
              sizeof(Half) == 2);

}  // namespace dflow

template <>
class std::numeric_limits<dflow::Half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int radix = 2;
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int min_exponent = -13;
  static constexpr int min_exponent10 = -4;
  static constexpr int max_exponent = 16;
  static constexpr int max_exponent10 = 4;
  static constexpr dflow::Half min() noexcept { return dflow::Half::from_bits(0x0400); }
  static constexpr dflow::Half max() noexcept { return dflow::Half::from_bits(0x7bff); }
  static constexpr dflow::Half lowest() noexcept { return dflow::Half::from_bits(0xfbff); }
  static constexpr dflow::Half epsilon() noexcept { return dflow::Half::from_bits(0x1400); }
  static constexpr dflow::Half round_error() noexcept { return dflow::Half::from_bits(0x3800); }
  static constexpr dflow::Half infinity() noexcept { return dflow::Half::from_bits(0x7c00); }
  static constexpr dflow::Half quiet_NaN() noexcept { return dflow::Half::from_bits(0x7e00); }
  static constexpr dflow::Half signaling_NaN() noexcept { return dflow::Half::from_bits(0x7d00); }
  static constexpr dflow::Half denorm_min() noexcept { return dflow::Half::from_bits(0x0001); }
};
