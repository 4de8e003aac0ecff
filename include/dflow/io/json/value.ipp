#pragma once

#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/json/value.hpp>
#include <dflow/io/json/writer.hpp>

#include <array>
#include <cmath>

namespace dflow::json {

namespace detail {

/// Builds a value from events.
class Builder final : public Events {
 public:
  Value root;

  void null() override { add(Value()); }
  void boolean(bool value) override { add(value); }
  void number(std::string_view spelling) override { add(Value::Number{std::string(spelling)}); }
  void string(std::string_view text) override { add(text); }
  void key(std::string_view name) override { name_ = name; }
  void begin_object() override { open(Value::Object()); }
  void end_object() override { close(); }
  void begin_array() override { open(Value::Array()); }
  void end_array() override { close(); }

 private:
  /// An object or array that is not whole yet, and the name that it will have as a member.
  struct Open {
    std::string name;
    std::variant<Value::Array, Value::Object> held;
  };

  void add(Value value) {
    if (open_.empty()) return void(root = std::move(value));
    auto& held = open_.back().held;
    if (auto* items = std::get_if<Value::Array>(&held)) return void(items->push_back(std::move(value)));
    std::get<Value::Object>(held).emplace_back(std::move(name_), std::move(value));
  }
  template <class Held>
  void open(Held held) {
    open_.push_back({std::move(name_), std::move(held)});
  }
  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    name_ = std::move(done.name);
    std::visit([this](auto& held) { add(Value(std::move(held))); }, done.held);
  }

  std::string name_;
  std::vector<Open> open_;  ///< outermost first
};

}  // namespace detail

Value::Value(double value) {
  std::string spelling;
  append_number(spelling, value);
  held_ = Number{std::move(spelling)};
}

std::string_view Value::kind_name() const noexcept {
  constexpr std::array<std::string_view, 6> names{"null", "boolean", "number", "string", "array", "object"};
  return names[held_.index()];
}

std::optional<double> Value::as_double() const noexcept {
  double value = 0;
  if (!is_number() || !parse_number(spelling(), value) || std::isinf(value)) return std::nullopt;
  return value;
}

const Value* Value::find(std::string_view name) const noexcept {
  if (!is_object()) return nullptr;
  for (const auto& [key, value] : members()) {
    if (key == name) return &value;
  }
  return nullptr;
}

Value parse(std::string_view text, const Limits& limits) {
  detail::Builder builder;
  read(text, builder, limits);
  return std::move(builder.root);
}

}  // namespace dflow::json
