#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/str_cat.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow::json {

/// The fate of text that is not UTF-8: an error, or U+FFFD in the place of each byte that is none.
enum class BadUtf8 : std::uint8_t { error, replace };

/// Appends a text in quotes, with escapes for characters that JSON does not have.
///
/// Errors: InvalidArgument for text that is not UTF-8, unless it is replaced.
void append_quoted(std::string& out, std::string_view text, BadUtf8 bad = BadUtf8::error);

/// Appends the shortest number that reads back as the same bits, with a point or an exponent: "1.0", "1e+300". A
/// number that is not finite is written as null.
void append_number(std::string& out, double value);

/// Writes JSON without spaces to the end of a string, with the commas that are due. Preconditions: each member is a key
/// and then a value, and each object and array that begins ends.
///
///     json::Writer writer(out);
///     writer.begin_object();
///     writer.key("a");
///     writer.number(1);
///     writer.end_object();  // {"a":1}
///
/// Thread safety: one thread at a time. Errors: as append_quoted.
class Writer {
 public:
  explicit Writer(std::string& out, BadUtf8 bad = BadUtf8::error) : out_(out), bad_(bad) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name);
  void string(std::string_view text);
  void number(double value);
  template <std::integral T>
  void number(T value) {
    separate();
    out_ += str_cat(+value);  // an int8 is a number, too
  }
  void boolean(bool value);
  void null();

 private:
  void begin(char bracket);
  void end(char bracket);
  /// Before a value: a comma if it stands behind another.
  void separate();

  std::string& out_;
  BadUtf8 bad_;
  bool is_behind_value_ = false;
};

}  // namespace dflow::json
