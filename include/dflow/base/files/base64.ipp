#pragma once

#include <dflow/base/files/base64.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow {

DFLOW_INLINE std::string to_base64(std::span<const std::byte> bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? alphabet[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

DFLOW_INLINE std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto value_of = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::string_view four = text.substr(i, 4);
    if (i + 4 == text.size()) four = four.substr(0, four.ends_with("==") ? 2 : four.ends_with('=') ? 3 : 4);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int value = k < four.size() ? value_of(four[k]) : 0;
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<std::uint32_t>(value);
    }
    const std::size_t count = four.size() - 1;
    if ((word & ((1u << (24 - 8 * count)) - 1)) != 0) return std::nullopt;  // two texts must not mean the same bytes
    for (std::size_t k = 0; k < count; ++k) bytes += static_cast<char>(word >> (16 - 8 * k) & 0xff);
  }
  return bytes;
}

}  // namespace dflow
