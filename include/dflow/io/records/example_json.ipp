#pragma once

#include <dflow/base/files/base64.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/json/reader.hpp>
#include <dflow/io/records/example_json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Builds an Example from JSON as it is read.
class ExampleJsonEvents final : public json::Events {
 public:
  /// `at`: bytes that the reader has taken.
  explicit ExampleJsonEvents(const std::size_t& at) : at_(at) {}

  Example example;

  void null() override {
    if (depth_ == whole || depth_ == values) fail("null is no value here");
    if (depth_ == map) add_feature();
  }
  void boolean(bool) override { fail("true and false are no values here"); }
  void number(std::string_view spelling) override {
    expect_value();
    if (list_ == List::bytes) fail("bytes are a text of base64");
    add_number(spelling);
  }
  void string(std::string_view text) override {
    expect_value();
    if (list_ != List::bytes) return add_number(text);
    std::string code(text);
    std::replace(code.begin(), code.end(), '+', '-');
    std::replace(code.begin(), code.end(), '/', '_');
    std::optional<std::string> decoded = from_base64_url(code);
    if (!decoded) fail("the text before is no base64");
    bytes_.push_back(*std::move(decoded));
  }
  void key(std::string_view name) override {
    switch (depth_) {
      case map:
        name_ = name;
        return;
      case feature:
        list_ = list_named(name);
        return;
      default: {
        constexpr std::string_view names[] = {"", "features", "feature", "", "", "value"};
        if (name != names[depth_]) fail_name(name);
      }
    }
  }
  void begin_object() override {
    if (depth_ >= list) fail("a list in brackets is due");
    if (depth_ == feature && feature_.dtype() != DType::invalid) fail("the feature has two lists");
    ++depth_;
  }
  void end_object() override {
    --depth_;
    if (depth_ == map) add_feature();
    if (depth_ != feature) return;
    if (list_ == List::bytes) {
      feature_ = Feature(std::exchange(bytes_, {}));
    } else if (list_ == List::floats) {
      feature_ = Feature(std::exchange(floats_, {}));
    } else {
      feature_ = Feature(std::exchange(integers_, {}));
    }
  }
  void begin_array() override {
    if (depth_++ != list) fail("an object is due");
  }
  void end_array() override { --depth_; }

 private:
  /// How many brackets are open: {"features": {"feature": {"name": {"int64List": {"value": [1]}}}}}.
  enum Depth : std::size_t { whole = 0, map = 3, feature = 4, list = 5, values = 6 };
  enum class List : std::uint8_t { bytes, floats, integers };

  [[noreturn]] void fail(std::string_view what) const {
    throw_error(Status::invalid_argument(str_cat("offset ", at_, ": ", what)));
  }
  [[noreturn]] void fail_name(std::string_view name) const {
    constexpr std::size_t shown = 40;
    fail(str_cat("no such field: '", name.substr(0, shown), "'"));
  }
  List list_named(std::string_view name) const {
    if (name == "bytesList" || name == "bytes_list") return List::bytes;
    if (name == "floatList" || name == "float_list") return List::floats;
    if (name == "int64List" || name == "int64_list") return List::integers;
    fail_name(name);
  }
  void expect_value() const {
    if (depth_ != values) fail(depth_ == list ? "a list in brackets is due" : "an object is due");
  }
  void add_feature() { example.features.emplace(std::move(name_), std::exchange(feature_, {})); }

  void add_number(std::string_view spelled) {
    if (list_ == List::integers) {
      integers_.push_back(integer(spelled));
    } else {
      floats_.push_back(float_number(spelled));
    }
  }
  float float_number(std::string_view spelled) const {
    float value = 0;
    if (!parse_number(spelled, value)) fail("the value before is no float");
    if (std::isinf(value) && spelled.find_first_of("iI") == spelled.npos) fail("the number before is out of range");
    return value;
  }
  std::int64_t integer(std::string_view spelled) const {
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

  const std::size_t& at_;
  std::size_t depth_ = whole;
  std::string name_;
  Feature feature_;
  List list_ = List::bytes;
  std::vector<std::string> bytes_;
  std::vector<float> floats_;
  std::vector<std::int64_t> integers_;
};

}  // namespace detail

Example example_from_json(std::string_view text) {
  constexpr json::Limits limits{.max_depth = 6, .max_bytes = std::numeric_limits<std::size_t>::max()};
  std::size_t at = 0;
  detail::ExampleJsonEvents events(at);
  if (const std::optional<json::Problem> problem = json::try_read(text, events, limits, at)) {
    throw_error(Status::invalid_argument(str_cat("offset ", problem->offset, ": ", problem->what)));
  }
  return std::move(events.example);
}

}  // namespace dflow
