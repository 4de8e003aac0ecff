#pragma once

#include <dflow/base/files/base64.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/records/example_json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

namespace dflow {

namespace detail {

/// Reads the JSON of an Example, whose objects are four deep.
class ExampleJsonReader {
 public:
  explicit ExampleJsonReader(std::string_view text) : text_(text) {}

  Example read() {
    Example example;
    bool has_features = false;
    object([&](const std::string& name) {
      if (name != "features") fail_name(name);
      if (std::exchange(has_features, true)) fail("features is there twice");
      if (!take_null()) features(example.features);
    });
    skip_spaces();
    if (at_ != text_.size()) fail("the text goes on after the object");
    return example;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw_error(invalid_argument(str_cat("offset ", at_, ": ", what)));
  }
  [[noreturn]] void fail_name(std::string_view name) const {
    constexpr std::size_t shown = 40;
    fail(str_cat("no such field: '", name.substr(0, shown), "'"));
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(str_cat("expected '", c, "'"));
  }
  bool take_null() {
    skip_spaces();
    if (!text_.substr(at_).starts_with("null")) return false;
    at_ += 4;
    return true;
  }

  /// Calls `member(name)`, which reads the value, for each member of an object.
  template <class Member>
  void object(Member member) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string name = string();
      expect(':');
      member(name);
    } while (take(','));
    expect('}');
  }

  void features(FeatureMap& map) {
    object([&](const std::string& name) {
      if (name != "feature") fail_name(name);
      if (take_null()) return;
      object([&](const std::string& key) {
        if (map.contains(key)) fail("the feature is there twice");
        map.emplace(key, feature());
      });
    });
  }

  Feature feature() {
    Feature found;
    if (take_null()) return found;
    object([&](const std::string& name) {
      const bool is_bytes = name == "bytesList" || name == "bytes_list",
                 is_float = name == "floatList" || name == "float_list";
      if (!is_bytes && !is_float && name != "int64List" && name != "int64_list") fail_name(name);
      if (take_null()) return;
      if (found.dtype() != DType::invalid) fail("the feature has two lists");
      if (is_bytes) {
        found = list<std::string>([&] { return bytes(); });
      } else if (is_float) {
        found = list<float>([&] { return float_number(); });
      } else {
        found = list<std::int64_t>([&] { return integer(); });
      }
    });
    return found;
  }

  template <class T, class Element>
  Feature list(Element element) {
    std::vector<T> values;
    bool has_values = false;
    object([&](const std::string& name) {
      if (name != "value") fail_name(name);
      if (std::exchange(has_values, true)) fail("value is there twice");
      if (take_null()) return;
      expect('[');
      if (take(']')) return;
      do values.push_back(element());
      while (take(','));
      expect(']');
    });
    return Feature(std::move(values));
  }

  std::string bytes() {
    std::string code = string();
    std::replace(code.begin(), code.end(), '+', '-');
    std::replace(code.begin(), code.end(), '/', '_');
    std::optional<std::string> decoded = from_base64_url(code);
    if (!decoded) fail("the text before is no base64");
    return *std::move(decoded);
  }

  float float_number() {
    float value = 0;
    skip_spaces();
    const bool is_quoted = text_.substr(at_).starts_with('"');
    const std::string spelled = is_quoted ? string() : std::string(number());
    if (!parse_number(spelled, value)) fail("the value before is no float");
    if (std::isinf(value) && spelled.find_first_of("iI") == spelled.npos) fail("the number before is out of range");
    return value;
  }

  std::int64_t integer() {
    skip_spaces();
    const bool is_quoted = text_.substr(at_).starts_with('"');
    const std::string spelled = is_quoted ? string() : std::string(number());
    std::int64_t value = 0;
    if (spelled.find_first_not_of("+-.0123456789eE") != spelled.npos) fail("the value before is no integer");
    if (parse_number(spelled, value)) return value;
    double wide = 0;
    constexpr double limit = 0x1p63;
    if (!parse_number(spelled, wide) || std::floor(wide) != wide || wide < -limit || wide >= limit) {
      fail("the value before is no 64-bit integer");
    }
    return static_cast<std::int64_t>(wide);
  }

  /// A number as JSON has it: no '+' in front, no zeros before others, digits on both sides of the point.
  std::string_view number() {
    const std::size_t begin = at_;
    const auto skip_digits = [&] {
      const std::size_t from = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ - from;
    };
    const auto skip_one_of = [&](std::string_view characters) {
      const bool is_there = at_ < text_.size() && characters.find(text_[at_]) != characters.npos;
      at_ += is_there ? 1 : 0;
      return is_there;
    };
    skip_one_of("-");
    const bool begins_with_zero = text_.substr(at_).starts_with('0');
    const std::size_t digits = skip_digits();
    bool is_well_formed = digits == 1 || (digits > 1 && !begins_with_zero);
    if (skip_one_of(".")) is_well_formed &= skip_digits() > 0;
    if (skip_one_of("eE")) {
      skip_one_of("+-");
      is_well_formed &= skip_digits() > 0;
    }
    if (!is_well_formed) fail("expected a number");
    return text_.substr(begin, at_ - begin);
  }

  std::string string() {
    expect('"');
    std::string value;
    for (;;) {
      const std::size_t end =
          std::find_if(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.end(),
                       [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }) -
          text_.begin();
      value.append(text_.substr(at_, end - at_));
      at_ = end;
      if (at_ == text_.size()) fail("a string does not end");
      const char c = text_[at_++];
      if (c == '"') return value;
      if (c != '\\') fail("a control character in a string");
      escape(value);
    }
  }

  void escape(std::string& value) {
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    const char name = at_ < text_.size() ? text_[at_++] : '\0';
    if (name != 'u') {
      const std::size_t which = names.find(name);
      if (which == names.npos) fail("no such escape in a string");
      value += characters[which];
      return;
    }
    std::uint32_t point = code_unit();
    if (point >= 0xd800 && point < 0xe000) {
      const bool has_second = point < 0xdc00 && text_.substr(at_).starts_with("\\u");
      at_ += has_second ? 2 : 0;
      const std::uint32_t second = has_second ? code_unit() : 0;
      if (second < 0xdc00 || second >= 0xe000) fail("half a surrogate pair in a string");
      point = 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00);
    }
    append_utf8(point, value);
  }

  std::uint32_t code_unit() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const std::size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
      if (digit == std::string_view::npos) fail("expected four hexadecimal digits");
      unit = unit << 4 | static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return unit;
  }

  static void append_utf8(std::uint32_t point, std::string& to) {
    const auto add = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xc0 | point >> 6);
    } else {
      if (point < 0x10000) {
        add(0xe0 | point >> 12);
      } else {
        add(0xf0 | point >> 18);
        add(0x80 | (point >> 12 & 0x3f));
      }
      add(0x80 | (point >> 6 & 0x3f));
    }
    add(0x80 | (point & 0x3f));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

Example example_from_json(std::string_view text) { return detail::ExampleJsonReader(text).read(); }

}  // namespace dflow
