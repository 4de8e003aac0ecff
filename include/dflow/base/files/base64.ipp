#pragma once

#include <dflow/base/files/base64.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow {

namespace detail {

/// The code of each 6 bits; 62 and 63 differ between the two alphabets.
std::string base64_text(std::span<const std::byte> bytes, std::string_view last_two, bool is_padded) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t value = word >> (18 - 6 * k) & 63;
      if (k > count) {
        if (is_padded) text += '=';
      } else {
        text += value < alphabet.size() ? alphabet[value] : last_two[value - alphabet.size()];
      }
    }
  }
  return text;
}

/// The bytes of a text without padding. The length of the text is not 1 more than a multiple of 4. With `is_exact`
/// bits that are left over must be 0, so that no two texts mean the same bytes.
std::optional<std::string> base64_bytes(std::string_view text, std::string_view last_two, bool is_exact) {
  const auto value_of = [&](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == last_two[0] ? 62 : c == last_two[1] ? 63 : -1;
  };
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(4, text.size()))) {
    const std::string_view four = text.substr(0, 4);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int value = k < four.size() ? value_of(four[k]) : 0;
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<std::uint32_t>(value);
    }
    const std::size_t count = four.size() - 1;
    if (is_exact && (word & ((1u << (24 - 8 * count)) - 1)) != 0) return std::nullopt;
    for (std::size_t k = 0; k < count; ++k) bytes += static_cast<char>(word >> (16 - 8 * k) & 0xff);
  }
  return bytes;
}

/// Without the one or two '=' that make its length a multiple of 4.
std::string_view without_padding(std::string_view text) noexcept {
  if (text.size() % 4 == 0 && text.ends_with('=')) text.remove_suffix(text.ends_with("==") ? 2 : 1);
  return text;
}

}  // namespace detail

std::string to_base64(std::span<const std::byte> bytes) { return detail::base64_text(bytes, "+/", true); }

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  return detail::base64_bytes(detail::without_padding(text), "+/", true);
}

std::string to_base64_url(std::span<const std::byte> bytes, bool is_padded) {
  return detail::base64_text(bytes, "-_", is_padded);
}

std::optional<std::string> from_base64_url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  return detail::base64_bytes(detail::without_padding(text), "-_", false);
}

}  // namespace dflow
