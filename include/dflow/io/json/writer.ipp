#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/json/writer.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace dflow::json {

void append_quoted(std::string& out, std::string_view text, BadUtf8 bad) {
  std::string replaced;
  if (!is_utf8(text)) {
    if (bad == BadUtf8::error) throw_error(Status::invalid_argument("a text for JSON is not UTF-8"));
    text = replaced = valid_utf8(text);
  }
  constexpr std::string_view special = "\"\\\b\f\n\r\t", names = "\"\\bfnrt", digits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && c != '"' && c != '\\') {
      out += c;
    } else if (const std::size_t which = special.find(c); which != std::string_view::npos) {
      out += '\\';
      out += names[which];
    } else {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 0xf];
    }
  }
  out += '"';
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) return void(out += "null");
  const double size = std::fabs(value);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e15);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 is_plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  const std::string_view spelling(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out += spelling;
  if (spelling.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void Writer::separate() {
  if (is_behind_value_) out_ += ',';
  is_behind_value_ = true;
}
void Writer::begin(char bracket) {
  separate();
  out_ += bracket;
  is_behind_value_ = false;
}
void Writer::end(char bracket) {
  out_ += bracket;
  is_behind_value_ = true;
}
void Writer::key(std::string_view name) {
  separate();
  append_quoted(out_, name, bad_);
  out_ += ':';
  is_behind_value_ = false;
}
void Writer::string(std::string_view text) {
  separate();
  append_quoted(out_, text, bad_);
}
void Writer::number(double value) {
  separate();
  append_number(out_, value);
}
void Writer::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
}
void Writer::null() {
  separate();
  out_ += "null";
}

}  // namespace dflow::json
