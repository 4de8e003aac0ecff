#include <dflow/io/json/value.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/json/writer.hpp>

#include "support/errors.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

using dflow::Code;
using dflow::json::Value;

namespace {

std::optional<double> json_double(std::string_view spelling) { return dflow::json::parse(spelling).as_double(); }

}  // namespace

TEST_CASE("a value has kinds, items and members in their order", "[json]") {
  const Value value = dflow::json::parse(R"({"z": [null, true, 1.5, "t"], "a": {"b": {}}, "n": -3})");
  REQUIRE(value.is_object());
  REQUIRE(value.members().size() == 3);
  CHECK(value.members()[0].first == "z");
  CHECK(value.members()[1].first == "a");
  const Value::Array& items = value.members()[0].second.items();
  REQUIRE(items.size() == 4);
  CHECK(items[0].is_null());
  CHECK(items[1].boolean());
  CHECK(items[2].spelling() == "1.5");
  CHECK(items[3].string() == "t");
  REQUIRE(value.find("a") != nullptr);
  CHECK(value.find("a")->find("b")->members().empty());
  CHECK(value.find("n")->as_int<int>() == -3);
  CHECK(value.find("b") == nullptr);
  CHECK(items[0].find("b") == nullptr);
  for (const auto& [text, name] : {std::pair("null", "null"), std::pair("false", "boolean"), std::pair("0", "number"),
                                   std::pair("\"\"", "string"), std::pair("[]", "array"), std::pair("{}", "object")}) {
    CHECK(dflow::json::parse(text).kind_name() == name);
  }
}

TEST_CASE("the first of two members of one name is found, and both are kept where they may be", "[json]") {
  const std::string_view text = R"({"a": 1, "a": 2})";
  const Value value = dflow::json::parse(text, {.allows_duplicates = true});
  CHECK(value.members().size() == 2);
  CHECK(value.find("a")->as_int<int>() == 1);
  CHECK(contains(error_of([&] { return dflow::json::parse(text); }), "line 1, offset 12: member 'a' stands twice"));
}

TEST_CASE("an integer is exact, or none of its type", "[json]") {
  const auto parsed = [](std::string_view text) { return dflow::json::parse(text); };
  CHECK(parsed("9223372036854775807").as_int<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  CHECK(parsed("-9223372036854775808").as_int<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(parsed("18446744073709551615").as_int<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
  CHECK(parsed("-0").as_int<std::uint32_t>() == 0u);
  CHECK(parsed("255").as_int<std::uint8_t>() == std::uint8_t{255});
  CHECK_FALSE(parsed("256").as_int<std::uint8_t>());
  CHECK_FALSE(parsed("-1").as_int<std::uint64_t>());
  CHECK_FALSE(parsed("9223372036854775808").as_int<std::int64_t>());
  CHECK_FALSE(parsed("18446744073709551616").as_int<std::uint64_t>());
  for (const char* text : {"1.0", "1e2", "null", "\"1\"", "true", "[]"}) CHECK_FALSE(parsed(text).as_int<int>());
  CHECK(parsed("1e2").is_number());
  CHECK_FALSE(parsed("1e2").is_integer());
}

TEST_CASE("a real is the nearest double, to the bit", "[json]") {
  CHECK(json_double("0.1") == 0.1);
  CHECK(json_double("0.1000000000000000055511151231257827") == 0.1);
  CHECK(json_double("184467440737095516155") == 184467440737095516155.0);
  CHECK(json_double("9007199254740993.0000000000000000000000000001") == 9007199254740994.0);
  CHECK(json_double("2.2250738585072011e-308") == 2.2250738585072011e-308);
  CHECK(json_double("4.9e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(json_double("1.7976931348623157e308") == std::numeric_limits<double>::max());
  CHECK(json_double("0e400") == 0.0);
  CHECK(json_double("1e-400") == 0.0);
  CHECK(std::signbit(*json_double("-0.0")));
  CHECK_FALSE(json_double("1e309"));
  CHECK_FALSE(json_double("-1e309"));
  CHECK_FALSE(json_double("\"1\""));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    std::string spelling;
    dflow::json::append_number(spelling, value);
    const std::optional<double> back = json_double(spelling);
    REQUIRE(back);
    REQUIRE(std::bit_cast<std::uint64_t>(*back) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("values are made of numbers as they are spelled", "[json]") {
  CHECK(Value(1.0).spelling() == "1.0");
  CHECK_FALSE(Value(1.0).is_integer());
  CHECK(Value(std::int8_t{-7}).spelling() == "-7");
  CHECK(Value(std::uint8_t{65}).spelling() == "65");
  CHECK(Value(std::numeric_limits<std::uint64_t>::max()).spelling() == "18446744073709551615");
  CHECK(Value(true).is_boolean());
  CHECK(Value("text").string() == "text");
  CHECK(Value(Value::Array{1, "a"}).items().size() == 2);
}

TEST_CASE("a value as deep as the limit is built and destroyed", "[json]") {
  const std::string deep = std::string(32, '[') + std::string(32, ']');
  CHECK(dflow::json::parse(deep).is_array());
  CHECK(code_of([&] { return dflow::json::parse("[" + deep + "]"); }) == Code::invalid_argument);
}
