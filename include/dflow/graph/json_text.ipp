#pragma once

#include <dflow/graph/json_text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

namespace dflow::json {

namespace detail {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Walks over one JSON value, a container per entry of a stack.
class Checker {
 public:
  Checker(std::string_view text, int max_depth) : text_(text), max_depth_(max_depth) {}

  void check() {
    do {
      // Here a value is due.
      skip_space();
      if (take('{')) {
        open('}');
        if (take('}')) {
          close();
        } else {
          key();
          continue;
        }
      } else if (take('[')) {
        open(']');
        if (!take(']')) continue;
        close();
      } else {
        scalar();
      }
      end_value();
    } while (!stack_.empty());
    skip_space();
    if (at_ != text_.size()) fail("there is more after the value");
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(invalid_argument(str_cat("malformed JSON, line ", line, ": ", what)));
  }

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) noexcept {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() noexcept {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  void open(char closing) {
    if (stack_.size() >= static_cast<std::size_t>(max_depth_)) fail(str_cat("nested deeper than ", max_depth_));
    stack_.push_back(closing);
    skip_space();
  }
  void close() { stack_.pop_back(); }

  /// After a value: the brackets that end here, then a comma if a container is still open.
  void end_value() {
    while (!stack_.empty()) {
      skip_space();
      const char closing = stack_.back();
      if (take(closing)) {
        stack_.pop_back();
        continue;
      }
      if (!take(',')) fail(closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
      skip_space();
      if (closing == '}') key();
      return;
    }
  }

  void key() {
    string();
    skip_space();
    if (!take(':')) fail("expected ':' after a member's name");
  }

  void scalar() {
    if (peek() == '"') return string();
    if (peek() == '-' || is_digit(peek())) return number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return;
      }
    }
    fail("expected a value");
  }

  void string() {
    if (!take('"')) fail("expected '\"'");
    for (;;) {
      if (at_ >= text_.size()) fail("a string does not end");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x20) fail("a control character in a string");
      ++at_;
      if (c == '"') return;
      if (c == '\\') escape();
    }
  }

  void escape() {
    const char c = peek();
    ++at_;
    if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos && c != '\0') return;
    if (c != 'u') fail("an unknown escape in a string");
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    if (digits.size() < 4 || !std::all_of(digits.begin(), digits.end(), is_hex))
      fail("\\u needs four hexadecimal digits");
    if (digits == "0000") fail("a zero character in a string; write bytes as \"base64:...\"");
    at_ += 4;
  }

  void number() {
    static_cast<void>(take('-'));
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('-')) static_cast<void>(take('+'));
      digits();
    }
  }
  void digits() {
    if (!is_digit(peek())) fail("expected a digit");
    while (is_digit(peek())) ++at_;
  }

  std::string_view text_;
  int max_depth_;
  std::size_t at_ = 0;
  std::vector<char> stack_;
};

}  // namespace detail

DFLOW_INLINE void check(std::string_view text, int max_depth) {
  if (!is_utf8(text)) throw Error(invalid_argument("malformed JSON: the text is not valid UTF-8"));
  detail::Checker(text, max_depth).check();
}

namespace detail {
/// A JSON number without its sign as rapidjson reads it right: see with_short_reals.
inline std::string short_real(std::string_view number) {
  std::uint64_t whole = 0;
  const char* const end = number.data() + number.size();
  const auto integer = std::from_chars(number.data(), end, whole);
  if (integer.ptr == end && integer.ec == std::errc()) return std::string(number);
  if (number.substr(0, number.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos) return "0.0";
  double real = 0;
  if (std::from_chars(number.data(), end, real).ec != std::errc()) {
    throw Error(invalid_argument(str_cat(number.substr(0, 80), " is beyond the range of double")));
  }
  // The exponent keeps a whole number a real one.
  std::array<char, 32> digits{};
  char* const from = digits.data();
  return {from, std::to_chars(from, from + digits.size(), real, std::chars_format::scientific).ptr};
}
}  // namespace detail

DFLOW_INLINE std::string with_short_reals(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (in_string || !detail::is_digit(text[i])) {
      if (text[i] == '"') in_string = !in_string;
      if (in_string && text[i] == '\\') out += text[i++];
      out += text[i++];
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-", i), text.size());
    out += detail::short_real(text.substr(i, end - i));
    i = end;
  }
  return out;
}

DFLOW_INLINE std::size_t line_of_member(std::string_view text, std::size_t number) noexcept {
  std::size_t line = 1, depth = 0, members = 0;
  bool in_string = false, is_key_due = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      if (is_key_due && members++ == number) return line;
      is_key_due = false;
      in_string = true;
    } else if (c == '{' || c == '[') {
      is_key_due = ++depth == 1;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      is_key_due = depth == 1;
    }
  }
  return line;
}

DFLOW_INLINE std::string join_short_lines(std::string_view pretty) {
  std::string out;
  out.reserve(pretty.size());
  bool in_string = false;
  std::size_t opened = std::string::npos;  // of the innermost container, as long as it holds no other
  for (std::size_t i = 0; i < pretty.size(); ++i) {
    const char c = pretty[i];
    out += c;
    if (in_string) {
      if (c == '\\' && i + 1 < pretty.size()) out += pretty[++i];
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      opened = out.size();
    } else if ((c == '}' || c == ']') && opened != std::string::npos) {
      // Outside strings, a newline and the spaces behind it become one space after a comma, and nothing elsewhere.
      std::size_t to = opened;
      bool quoted = false;
      for (std::size_t from = opened; from < out.size(); ++from) {
        if (!quoted && out[from] == '\n') {
          while (from + 1 < out.size() && out[from + 1] == ' ') ++from;
          if (out[to - 1] == ',') out[to++] = ' ';
          continue;
        }
        out[to++] = out[from];
        if (quoted && out[from] == '\\') {
          out[to++] = out[++from];
        } else if (out[from] == '"') {
          quoted = !quoted;
        }
      }
      out.resize(to);
      opened = std::string::npos;
    } else if (c == '}' || c == ']') {
      opened = std::string::npos;
    }
  }
  return out;
}

DFLOW_INLINE bool is_utf8(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = byte(i++);
    if (first < 0x80) continue;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < static_cast<std::size_t>(more)) return false;
    // The second byte excludes overlong forms, surrogates, and what lies past U+10FFFF (RFC 3629).
    const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < low || byte(i) > high) return false;
    for (int k = 1; k < more; ++k) {
      if ((byte(i + static_cast<std::size_t>(k)) & 0xc0) != 0x80) return false;
    }
    i += static_cast<std::size_t>(more);
  }
  return true;
}

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

namespace detail {
inline constexpr std::string_view base64_mark = "base64:";
}

DFLOW_INLINE std::string quote(std::string_view bytes) {
  if (is_utf8(bytes) && bytes.find('\0') == std::string_view::npos && !bytes.starts_with(detail::base64_mark)) {
    return std::string(bytes);
  }
  return std::string(detail::base64_mark) + to_base64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

DFLOW_INLINE std::string unquote(std::string_view text) {
  if (!text.starts_with(detail::base64_mark)) return std::string(text);
  std::optional<std::string> bytes = from_base64(text.substr(detail::base64_mark.size()));
  if (!bytes) throw Error(invalid_argument(str_cat("'", text.substr(0, 80), "' is not base64")));
  return *std::move(bytes);
}

namespace detail {
inline constexpr std::uint64_t plain_nan = 0x7ff8000000000000u;
}

DFLOW_INLINE std::string real_to_text(double value) {
  if (!std::isnan(value)) return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : str_cat(value);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (bits == detail::plain_nan) return "nan";
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bits, 16).ptr;
  return str_cat("nan(0x", std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())), ")");
}

DFLOW_INLINE double real_from_text(std::string_view text) {
  if (text == "nan") return std::bit_cast<double>(detail::plain_nan);
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  const auto is_all = [](std::string_view digits, auto result) {
    return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  };
  if (text.starts_with("nan(0x") && text.ends_with(")")) {
    const std::string_view digits = text.substr(6, text.size() - 7);
    std::uint64_t bits = 0;
    if (is_all(digits, std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16)) &&
        std::isnan(std::bit_cast<double>(bits))) {
      return std::bit_cast<double>(bits);
    }
  }
  double value = 0;
  if (!text.empty() && (detail::is_digit(text.back()) || text.back() == '.') &&
      is_all(text, std::from_chars(text.data(), text.data() + text.size(), value))) {
    return value;
  }
  throw Error(invalid_argument(str_cat("'", text.substr(0, 80), "' is not a real number")));
}

DFLOW_INLINE PartialShape shape_from_text(std::string_view text) {
  if (text == "<unknown>") return PartialShape::unknown();
  std::vector<std::int64_t> dims;
  bool is_legal = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  std::string_view rest = is_legal ? text.substr(1, text.size() - 2) : std::string_view();
  while (is_legal && !rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    std::int64_t dim = dynamic;
    if (item != "?") {
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), dim);
      is_legal = error == std::errc() && end == item.data() + item.size() && dim >= 0;
    }
    dims.push_back(dim);
    is_legal = is_legal && dims.size() <= static_cast<std::size_t>(max_rank) && comma + 1 != rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!is_legal)
    throw Error(invalid_argument(str_cat("'", text.substr(0, 80), "' is not a shape: '[?,784]' or '<unknown>' is")));
  return PartialShape(std::span<const std::int64_t>(dims));
}

}  // namespace dflow::json
