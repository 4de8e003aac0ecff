#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace dflow {

/// bfloat16: the upper half of an IEEE 754 binary32 (1 sign, 8 exponent, 7 fraction bits). A storage type with the
/// range of float; arithmetic converts to float, computes, and rounds to nearest, ties to even.
///
/// From double and wide integers it rounds by way of float, hence twice.
///
/// Thread safety: a value type.
class BFloat16 {
 public:
  constexpr BFloat16() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  DFLOW_FN constexpr explicit BFloat16(N value) noexcept : bits_(round_from(static_cast<float>(value))) {}

  DFLOW_FN constexpr operator float() const noexcept { return widen(bits_); }

  DFLOW_FN constexpr std::uint16_t bits() const noexcept { return bits_; }
  DFLOW_FN static constexpr BFloat16 from_bits(std::uint16_t bits) noexcept {
    BFloat16 half{};
    half.bits_ = bits;
    return half;
  }

  DFLOW_FN constexpr BFloat16 operator-() const noexcept {
    return from_bits(static_cast<std::uint16_t>(bits_ ^ 0x8000u));
  }
  DFLOW_FN constexpr BFloat16 operator+() const noexcept { return *this; }

  DFLOW_FN friend constexpr BFloat16 operator+(BFloat16 a, BFloat16 b) noexcept {
    return BFloat16(float(a) + float(b));
  }
  DFLOW_FN friend constexpr BFloat16 operator-(BFloat16 a, BFloat16 b) noexcept {
    return BFloat16(float(a) - float(b));
  }
  DFLOW_FN friend constexpr BFloat16 operator*(BFloat16 a, BFloat16 b) noexcept {
    return BFloat16(float(a) * float(b));
  }
  DFLOW_FN friend constexpr BFloat16 operator/(BFloat16 a, BFloat16 b) noexcept {
    return BFloat16(float(a) / float(b));
  }
  DFLOW_FN constexpr BFloat16& operator+=(BFloat16 b) noexcept { return *this = *this + b; }
  DFLOW_FN constexpr BFloat16& operator-=(BFloat16 b) noexcept { return *this = *this - b; }
  DFLOW_FN constexpr BFloat16& operator*=(BFloat16 b) noexcept { return *this = *this * b; }
  DFLOW_FN constexpr BFloat16& operator/=(BFloat16 b) noexcept { return *this = *this / b; }

  DFLOW_FN friend constexpr bool operator==(BFloat16 a, BFloat16 b) noexcept { return float(a) == float(b); }
  DFLOW_FN friend constexpr bool operator!=(BFloat16 a, BFloat16 b) noexcept { return float(a) != float(b); }
  DFLOW_FN friend constexpr bool operator<(BFloat16 a, BFloat16 b) noexcept { return float(a) < float(b); }
  DFLOW_FN friend constexpr bool operator<=(BFloat16 a, BFloat16 b) noexcept { return float(a) <= float(b); }
  DFLOW_FN friend constexpr bool operator>(BFloat16 a, BFloat16 b) noexcept { return float(a) > float(b); }
  DFLOW_FN friend constexpr bool operator>=(BFloat16 a, BFloat16 b) noexcept { return float(a) >= float(b); }

 private:
  // __builtin_bit_cast and not std::bit_cast, which nvcc does not call from device code without a flag.
  DFLOW_FN static constexpr float widen(std::uint16_t bits) noexcept {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }

  DFLOW_FN static constexpr std::uint16_t round_from(float value) noexcept {
    const auto word = __builtin_bit_cast(std::uint32_t, value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((word >> 16) | 0x0040u);  // a quiet NaN
    return static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }

  std::uint16_t bits_;
};

static_assert(std::is_trivially_copyable_v<BFloat16> && std::is_trivially_default_constructible_v<BFloat16> &&
              sizeof(BFloat16) == 2);

}  // namespace dflow

template <>
class std::numeric_limits<dflow::BFloat16> {
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
  static constexpr int digits = 8;
  static constexpr int digits10 = 2;
  static constexpr int max_digits10 = 4;
  static constexpr int min_exponent = -125;
  static constexpr int min_exponent10 = -37;
  static constexpr int max_exponent = 128;
  static constexpr int max_exponent10 = 38;
  static constexpr dflow::BFloat16 min() noexcept { return dflow::BFloat16::from_bits(0x0080); }
  static constexpr dflow::BFloat16 max() noexcept { return dflow::BFloat16::from_bits(0x7f7f); }
  static constexpr dflow::BFloat16 lowest() noexcept { return dflow::BFloat16::from_bits(0xff7f); }
  static constexpr dflow::BFloat16 epsilon() noexcept { return dflow::BFloat16::from_bits(0x3c00); }
  static constexpr dflow::BFloat16 round_error() noexcept { return dflow::BFloat16::from_bits(0x3f00); }
  static constexpr dflow::BFloat16 infinity() noexcept { return dflow::BFloat16::from_bits(0x7f80); }
  static constexpr dflow::BFloat16 quiet_NaN() noexcept { return dflow::BFloat16::from_bits(0x7fc0); }
  static constexpr dflow::BFloat16 signaling_NaN() noexcept { return dflow::BFloat16::from_bits(0x7fa0); }
  static constexpr dflow::BFloat16 denorm_min() noexcept { return dflow::BFloat16::from_bits(0x0001); }
};
