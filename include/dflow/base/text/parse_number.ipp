#pragma once

#include <dflow/base/text/parse_number.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <type_traits>

namespace dflow {

namespace detail {

std::string_view without_spaces(std::string_view text) noexcept {
  constexpr std::string_view spaces = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

/// For a number with well-formed digits that is outside of the float's range: whether it is too small, not too large.
/// The place of its first digit that is not 0 gives its size: the number of digits before the point, or of zeros
/// behind it, and the exponent.
bool is_tiny(std::string_view digits, bool is_hexadecimal) noexcept {
  const std::size_t mark = digits.find_first_of(is_hexadecimal ? "pP" : "eE");
  std::string_view mantissa = digits.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_not_of("0.");
  if (first == mantissa.npos) return true;
  double places = static_cast<double>(point) - static_cast<double>(first) + (first > point ? 1 : 0);
  if (is_hexadecimal) places *= 4;
  if (mark == digits.npos) return places <= 0;
  std::string_view exponent = digits.substr(mark + 1);
  const bool is_negative = exponent.starts_with('-');
  if (is_negative || exponent.starts_with('+')) exponent.remove_prefix(1);
  double size = 0;
  for (const char c : exponent) size = std::min(size * 10 + (c - '0'), 1e300);
  return places + (is_negative ? -size : size) <= 0;
}

template <class T>
bool parse_number_as(std::string_view text, T& value) noexcept {
  text = without_spaces(text);
  const bool is_negative = text.starts_with('-');
  if constexpr (std::is_floating_point_v<T>) {
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const bool is_hexadecimal = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (is_hexadecimal) text.remove_prefix(2);
    if (text.starts_with('-') || (is_hexadecimal && text.find_first_of("iInN") == 0)) return false;
    T read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read,
                                              is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) return false;
    if (error == std::errc::result_out_of_range) {
      read = is_tiny(text, is_hexadecimal) ? T(0) : std::numeric_limits<T>::infinity();
    }
    value = is_negative ? -read : read;
    return true;
  } else {
    if (text.starts_with('+')) {
      text.remove_prefix(1);
      if (text.starts_with('-')) return false;
    }
    T read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    value = read;
    return true;
  }
}

}  // namespace detail

bool parse_number(std::string_view text, float& value) noexcept { return detail::parse_number_as(text, value); }
bool parse_number(std::string_view text, double& value) noexcept { return detail::parse_number_as(text, value); }
bool parse_number(std::string_view text, std::int32_t& value) noexcept { return detail::parse_number_as(text, value); }
bool parse_number(std::string_view text, std::int64_t& value) noexcept { return detail::parse_number_as(text, value); }

}  // namespace dflow
