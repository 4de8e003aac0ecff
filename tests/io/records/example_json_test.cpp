#include <dflow/io/records/example_json.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace dflow;

// We tried with DecodeJSONExample of TensorFlow 2.21.0 which texts are Examples, and the content of each Example.
// TensorFlow's JSON is more lenient than RFC 8259 (names without quotes, a comma at the end): see the last test.

namespace {

std::string with_list(const std::string& list) { return "{\"features\": {\"feature\": {\"a\": " + list + "}}}"; }

Feature feature_of(const std::string& list) { return example_from_json(with_list(list)).features.at("a"); }

bool is_refused(const std::string& text) {
  return code_of([&] { return example_from_json(text); }) == Code::invalid_argument;
}

}  // namespace

TEST_CASE("Features of each type are read from JSON", "[example]") {
  CHECK(feature_of(R"({"int64List": {"value": [1, "2", -3, 4.0, 5e2, "9223372036854775807", "1.0", -0]}})") ==
        Feature(std::vector<std::int64_t>{1, 2, -3, 4, 500, std::numeric_limits<std::int64_t>::max(), 1, 0}));
  CHECK(feature_of(R"({"float_list": {"value": [1, 1.5, "2.5", "Infinity", "-Infinity", -0.0, 1e-50]}})") ==
        Feature(std::vector<float>{1, 1.5f, 2.5f, INFINITY, -INFINITY, -0.0f, 0}));
  CHECK(std::isnan(feature_of(R"({"floatList": {"value": ["NaN"]}})").floats()[0]));
  CHECK(feature_of(R"({"bytesList": {"value": ["YWJj", "YQ==", "YQ", "-_-_", "+/+/", "", "YR", "YQ\u003d="]}})") ==
        Feature(std::vector<std::string>{"abc", "a", "a", "\xfb\xff\xbf", "\xfb\xff\xbf", "", "a", "a"}));
}

TEST_CASE("What is not there is null, an empty object or left out", "[example]") {
  CHECK(example_from_json("{}") == Example());
  CHECK(example_from_json(" { \"features\" : null } ") == Example());
  CHECK(example_from_json("{\"features\": {\"feature\": null}}") == Example());
  CHECK(feature_of("{}") == Feature());
  CHECK(feature_of("null") == Feature());
  CHECK(feature_of(R"({"int64List": null})") == Feature());
  CHECK(feature_of(R"({"int64List": {}})") == Feature(std::vector<std::int64_t>{}));
  CHECK(feature_of(R"({"floatList": {"value": null}})") == Feature(std::vector<float>{}));
  CHECK(feature_of(R"({"bytesList": {"value": []}})") == Feature(std::vector<std::string>{}));
}

TEST_CASE("Names may have escapes", "[example]") {
  const Example example =
      example_from_json(R"({"features": {"feature": {"\u00e9\ud83d\ude00\n\/\u20AC": {}, "": {}}}})");
  CHECK(example.features.size() == 2);
  CHECK(example.features.contains("\xc3\xa9\xf0\x9f\x98\x80\n/\xe2\x82\xac"));
  CHECK(example.features.contains(""));
}

TEST_CASE("What is no Example is refused", "[example]") {
  for (const char* list : {R"({"int64List": {"value": [1.5]}})",
                           R"({"int64List": {"value": [9223372036854775808]}})",
                           R"({"int64List": {"value": [" 1"]}})",
                           R"({"int64List": {"value": [true]}})",
                           R"({"int64List": {"value": [01]}})",
                           R"({"int64List": {"value": [+1]}})",
                           R"({"int64List": {"value": [""]}})",
                           R"({"int64List": {"value": ["inf"]}})",
                           R"({"floatList": {"value": [1e40]}})",
                           R"({"floatList": {"value": [NaN]}})",
                           R"({"floatList": {"value": [.5]}})",
                           R"({"floatList": {"value": [1.]}})",
                           R"({"floatList": {"value": [""]}})",
                           R"({"bytesList": {"value": ["Y"]}})",
                           R"({"bytesList": {"value": ["Y Q"]}})",
                           R"({"bytesList": {"value": ["YQ="]}})",
                           R"({"bytesList": {"value": [1]}})",
                           R"({"int64List": {"value": [1]}, "floatList": {"value": [1]}})",
                           R"({"x": 1})",
                           R"({"int64List": {"x": 1}})",
                           R"({"int64List": {"value": [1], "value": [2]}})"}) {
    CHECK(is_refused(with_list(list)));
  }
  for (const char* text :
       {"", "null", "[]", "{} x", "{\"x\": 1}", "{\"features\": {\"x\": 1}}", "{\"features\": {}, \"features\": {}}",
        "{\"features\": {\"feature\": []}}", "{\"features\": {\"feature\": {\"a\": {}, \"a\": {}}}}",
        "{\"features\": {\"feature\": {\"\\ud83d\": {}}}}", "{\"features\": {\"feature\": {\"\\q\": {}}}}", "{\"a", "{",
        "{\"features\": {\"feature\": {\"\\u00\": {}}}}", "// c\n{}"}) {
    CHECK(is_refused(text));
  }
}

TEST_CASE("JSON is that of the standard", "[example]") {
  for (const char* text :
       {"{\"features\": {},}", "{features: {}}", "{'features': {}}", "{\"features\": {\"feature\": {\"a\tb\": {}}}}"}) {
    CHECK(is_refused(text));
  }
  CHECK(is_refused(with_list(R"({"int64List": {"value": [1,]}})")));
  CHECK(is_refused(with_list(R"({"int64List": {"value": 1}})")));
  CHECK(is_refused(with_list(R"({"int64List": {"value": [null]}})")));
}
