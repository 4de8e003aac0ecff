#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>

namespace dflow {

std::string printable(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  const std::string_view kept = text.substr(0, max_bytes);
  std::string out;
  out.reserve(kept.size());
  const auto escape = [&](unsigned char c) {
    out += "\\x";
    out += digits[c >> 4];
    out += digits[c & 15];
  };
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto c = static_cast<unsigned char>(kept[i]);
    const auto next = static_cast<unsigned char>(i + 1 < kept.size() ? kept[i + 1] : 0);
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // UTF-8 of U+0080 to U+009F
      escape(c);
      escape(next);
      ++i;
    } else if (c < 0x20 || c == 0x7f) {
      escape(c);
    } else {
      out += kept[i];
    }
  }
  if (kept.size() < text.size()) out += str_cat("... (", text.size() - kept.size(), " bytes more)");
  return out;
}

namespace detail {

/// Bytes of the character that the text begins with; 0 if it is none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool is_too_large = first == 0xf4 && byte(1) >= 0x90;
  return is_too_long || is_surrogate || is_too_large ? 0 : length;
}

}  // namespace detail

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = detail::utf8_length(text);
    out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = detail::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace dflow
