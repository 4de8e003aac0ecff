#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/json/reader.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace dflow::json {

/// A JSON value. Numbers are kept as they are spelled, so that a reader says which are integers, and none loses a
/// digit. Members stay in their order, and one name may have several.
///
/// Thread safety: a value.
class Value {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  using Array = std::vector<Value>;
  using Object = std::vector<std::pair<std::string, Value>>;
  /// How a number is spelled.
  struct Number {
    std::string spelling;
  };

  Value() = default;
  Value(Array items) : held_(std::move(items)) {}
  Value(Object members) : held_(std::move(members)) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(std::string_view text) : held_(std::string(text)) {}
  Value(const char* text) : held_(std::string(text)) {}
  Value(Number number) : held_(std::move(number)) {}
  Value(std::same_as<bool> auto value) : held_(bool{value}) {}
  /// A real is spelled as `append_number` does it.
  Value(double value);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T value) : held_(Number{str_cat(+value)}) {}

  Kind kind() const noexcept { return static_cast<Kind>(held_.index()); }
  /// "null", "boolean", "number", "string", "array" or "object".
  std::string_view kind_name() const noexcept;
  bool is_null() const noexcept { return kind() == Kind::null; }
  bool is_boolean() const noexcept { return kind() == Kind::boolean; }
  bool is_number() const noexcept { return kind() == Kind::number; }
  bool is_string() const noexcept { return kind() == Kind::string; }
  bool is_array() const noexcept { return kind() == Kind::array; }
  bool is_object() const noexcept { return kind() == Kind::object; }
  /// A number without a point and an exponent.
  bool is_integer() const noexcept { return is_number() && spelling().find_first_of(".eE") == std::string::npos; }

  // Each is for values of its kind.
  bool boolean() const { return std::get<bool>(held_); }
  const std::string& spelling() const { return std::get<Number>(held_).spelling; }
  const std::string& string() const { return std::get<std::string>(held_); }
  const Array& items() const { return std::get<Array>(held_); }
  const Object& members() const { return std::get<Object>(held_); }

  /// Nothing if it is no integer, or none that T has.
  template <std::integral T>
  std::optional<T> as_int() const noexcept;
  /// The nearest one. Nothing if it is no number, or too large.
  std::optional<double> as_double() const noexcept;
  /// The first member of that name; null without one, and if it is no object.
  const Value* find(std::string_view name) const noexcept;

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> held_;  // in the order of Kind
};

template <std::integral T>
std::optional<T> Value::as_int() const noexcept {
  if (!is_integer()) return std::nullopt;
  const std::string& text = spelling();
  if (text == "-0") return T{0};
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The value that a text stands for. Memory: some 20 times the text, for a list of small numbers.
///
/// Errors: InvalidArgument: "line 3, offset 41: a value is due".
Value parse(std::string_view text, const Limits& limits = {});

}  // namespace dflow::json
