#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>

namespace dflow {

DFLOW_INLINE std::string printable(std::string_view text, std::size_t max_bytes) {
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

}  // namespace dflow
