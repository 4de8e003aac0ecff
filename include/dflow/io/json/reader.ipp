#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/json/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): the names are RapidJSON's

// RapidJSON's stack adds to a null pointer while it is empty, which clang's sanitizer would report of each reader.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif

// RapidJSON, or the copy of it that cereal brings, in a namespace of the library's own: a program may have another
// version. A unit that has included it before has given it a namespace, which is taken then.
#if __has_include(<rapidjson/reader.h>)
#if !defined(RAPIDJSON_NAMESPACE)
#define RAPIDJSON_NAMESPACE dflow_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace dflow_rapidjson {
#define RAPIDJSON_NAMESPACE_END }
#endif
#include <rapidjson/reader.h>
namespace dflow::json::detail {
namespace rapid = RAPIDJSON_NAMESPACE;
}
#else
#if !defined(CEREAL_RAPIDJSON_NAMESPACE)
#define CEREAL_RAPIDJSON_NAMESPACE dflow_rapidjson
#define CEREAL_RAPIDJSON_NAMESPACE_BEGIN namespace dflow_rapidjson {
#define CEREAL_RAPIDJSON_NAMESPACE_END }
#endif
#include <cereal/external/rapidjson/reader.h>
namespace dflow::json::detail {
namespace rapid = CEREAL_RAPIDJSON_NAMESPACE;
}
#endif

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace dflow::json {

namespace detail {

/// The end of the number that `text` begins with, 0 if it is none: `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`,
/// and nothing behind it that could be a part of one.
std::size_t number_length(std::string_view text) noexcept {
  std::size_t at = 0;
  const auto take_one_of = [&](std::string_view characters) {
    const bool is_there = at < text.size() && characters.find(text[at]) != std::string_view::npos;
    at += is_there ? 1 : 0;
    return is_there;
  };
  const auto take_digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at != begin;
  };
  take_one_of("-");
  if (!take_one_of("0") && !take_digits()) return 0;
  if (take_one_of(".") && !take_digits()) return 0;
  if (take_one_of("eE")) {
    take_one_of("+-");
    if (!take_digits()) return 0;
  }
  const std::size_t length = at;
  return take_one_of("0123456789.eE+-") ? 0 : length;
}

/// The characters of a text as RapidJSON takes them, by RapidJSON's names. RapidJSON would make a double of each
/// number, not always the nearest one, and refuse 0e400. So it is shown a zero in the place of each number, and the
/// number's spelling is kept here.
class Characters {
 public:
  using Ch = char;

  explicit Characters(std::string_view text) : text_(text) {
    if (text.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  Ch Peek() {
    if (at_ == text_.size()) return '\0';
    const char c = text_[at_];
    return !is_in_string_ && (c == '-' || (c >= '0' && c <= '9')) && is_number() ? '0' : c;
  }
  Ch Take() {
    if (at_ == text_.size()) return '\0';
    const char c = Peek();
    if (c == '"') is_in_string_ = true;
    const bool is_number = number_at_ == at_ && number_bytes_ != 0;
    at_ += is_number ? number_bytes_ : 1;
    return c;
  }
  std::size_t Tell() const noexcept { return at_; }
  // It writes nothing here.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

  /// A quotation mark is taken at the begin and at the end of a string: here it has ended.
  void end_string() noexcept { is_in_string_ = false; }
  std::string_view last_number() const noexcept { return text_.substr(number_at_, number_bytes_); }

 private:
  bool is_number() noexcept {
    if (is_broken_) return false;
    if (number_at_ != at_ || number_bytes_ == 0) {
      number_at_ = at_;
      number_bytes_ = number_length(text_.substr(at_));
      is_broken_ = number_bytes_ == 0;  // RapidJSON is to see, and say, what is wrong
    }
    return !is_broken_;
  }

  std::string_view text_;
  std::size_t at_ = 0, number_at_ = 0, number_bytes_ = 0;
  bool is_in_string_ = false, is_broken_ = false;
};

/// Gives RapidJSON's events on, within the limits.
class Forwarder {
 public:
  Forwarder(Events& events, const Limits& limits, Characters& characters, std::size_t& at)
      : events_(events), limits_(limits), characters_(characters), at_(at) {}

  std::optional<Problem> problem;

  bool Null() { return at_ = characters_.Tell(), events_.null(), true; }
  bool Bool(bool value) { return at_ = characters_.Tell(), events_.boolean(value), true; }
  bool Int(std::int32_t) { return number(); }
  bool Uint(std::uint32_t) { return number(); }
  bool Int64(std::int64_t) { return number(); }
  bool Uint64(std::uint64_t) { return number(); }
  bool Double(double) { return number(); }
  bool RawNumber(const char*, rapid::SizeType, bool) { return number(); }
  bool String(const char* text, rapid::SizeType size, bool) {
    if (!end_string({text, size})) return false;
    return events_.string({text, size}), true;
  }
  bool Key(const char* text, rapid::SizeType size, bool) {
    if (!end_string({text, size})) return false;
    const std::string_view name(text, size);
    if (!limits_.allows_duplicates && !open_.back().emplace(name).second) {
      constexpr std::size_t most = 80;
      return fail(str_cat("member '", name.substr(0, most), name.size() > most ? "..." : "", "' stands twice"));
    }
    return events_.key(name), true;
  }
  bool StartObject() { return open() && (events_.begin_object(), true); }
  bool EndObject(rapid::SizeType) { return close(), events_.end_object(), true; }
  bool StartArray() { return open() && (events_.begin_array(), true); }
  bool EndArray(rapid::SizeType) { return close(), events_.end_array(), true; }

 private:
  bool fail(std::string what) {
    problem = Problem{at_, std::move(what)};
    return false;
  }
  bool number() {
    at_ = characters_.Tell();
    const std::string_view spelling = characters_.last_number();
    if (spelling.empty()) return fail("a number is malformed");
    return events_.number(spelling), true;
  }
  /// RapidJSON passes over halves of surrogate pairs that are second ones.
  bool end_string(std::string_view text) {
    characters_.end_string();
    at_ = characters_.Tell();
    for (std::size_t i = text.find('\xed'); i != std::string_view::npos; i = text.find('\xed', i + 1)) {
      if (static_cast<unsigned char>(text[i + 1]) >= 0xa0) return fail("half a surrogate pair in a string");
    }
    return true;
  }
  bool open() {
    at_ = characters_.Tell();
    if (depth_ == limits_.max_depth) return fail(str_cat("nested deeper than ", limits_.max_depth));
    ++depth_;
    if (!limits_.allows_duplicates) open_.emplace_back();
    return true;
  }
  void close() {
    at_ = characters_.Tell();
    --depth_;
    if (!limits_.allows_duplicates) open_.pop_back();
  }

  Events& events_;
  const Limits& limits_;
  Characters& characters_;
  std::size_t& at_;
  std::size_t depth_ = 0;
  std::vector<std::unordered_set<std::string>> open_;  ///< the names so far of each object and array that is open
};

// NOLINTEND(readability-identifier-naming)

std::string_view words_for(rapid::ParseErrorCode code) noexcept {
  switch (code) {
    case rapid::kParseErrorDocumentEmpty:
      return "there is no value";
    case rapid::kParseErrorDocumentRootNotSingular:
      return "the text goes on after its value";
    case rapid::kParseErrorValueInvalid:
      return "a value is due";
    case rapid::kParseErrorObjectMissName:
      return "a name in quotes is due";
    case rapid::kParseErrorObjectMissColon:
      return "':' is due";
    case rapid::kParseErrorObjectMissCommaOrCurlyBracket:
      return "',' or '}' is due";
    case rapid::kParseErrorArrayMissCommaOrSquareBracket:
      return "',' or ']' is due";
    case rapid::kParseErrorStringUnicodeEscapeInvalidHex:
      return "four hexadecimal digits are due";
    case rapid::kParseErrorStringUnicodeSurrogateInvalid:
      return "half a surrogate pair in a string";
    case rapid::kParseErrorStringEscapeInvalid:
      return "a control character, or no such escape, in a string";
    case rapid::kParseErrorStringMissQuotationMark:
      return "a string does not end";
    case rapid::kParseErrorStringInvalidEncoding:
      return "a string is not UTF-8";
    case rapid::kParseErrorNumberMissFraction:
    case rapid::kParseErrorNumberMissExponent:
    case rapid::kParseErrorNumberTooBig:
      return "a number is malformed";
    default:
      return "it is malformed";
  }
}

}  // namespace detail

std::optional<Problem> try_read(std::string_view text, Events& events, const Limits& limits, std::size_t& at) {
  at = 0;
  const std::size_t most = std::min<std::size_t>(limits.max_bytes, 0xffffffff);  // RapidJSON counts with 32 bits
  if (text.size() > most) return Problem{most, str_cat("the text has more than ", most, " bytes")};
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Problem{zero, "there is a zero byte"};  // to RapidJSON it is the end
  }
  detail::Characters characters(text);
  detail::Forwarder forwarder(events, limits, characters, at);
  detail::rapid::GenericReader<detail::rapid::UTF8<>, detail::rapid::UTF8<>> reader;
  constexpr unsigned flags = detail::rapid::kParseIterativeFlag | detail::rapid::kParseValidateEncodingFlag;
  const detail::rapid::ParseResult result = reader.Parse<flags>(characters, forwarder);
  if (!result.IsError()) return std::nullopt;
  if (forwarder.problem) return std::move(forwarder.problem);
  return Problem{result.Offset(), std::string(detail::words_for(result.Code()))};
}

void read(std::string_view text, Events& events, const Limits& limits) {
  std::size_t at = 0;
  const std::optional<Problem> problem = try_read(text, events, limits, at);
  if (!problem) return;
  const std::string_view before = text.substr(0, problem->offset);
  throw_error(Status::invalid_argument(str_cat("line ", 1 + std::count(before.begin(), before.end(), '\n'), ", offset ",
                                               problem->offset, ": ", problem->what)));
}

}  // namespace dflow::json
