#include <dflow/io/json/writer.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>

#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using namespace std::string_view_literals;
using dflow::Code;
using dflow::json::BadUtf8;

namespace {

std::string json_quoted(std::string_view text, BadUtf8 bad = BadUtf8::error) {
  std::string out;
  dflow::json::append_quoted(out, text, bad);
  return out;
}

std::string json_number(double value) {
  std::string out;
  dflow::json::append_number(out, value);
  return out;
}

}  // namespace

TEST_CASE("a text in quotes has escapes where JSON needs them, and no others", "[json]") {
  CHECK(json_quoted("") == "\"\"");
  CHECK(json_quoted("a/b \xc3\xa9\xf0\x9f\x98\x80\x7f") == "\"a/b \xc3\xa9\xf0\x9f\x98\x80\x7f\"");
  CHECK(json_quoted("\"\\\b\f\n\r\t\0\x1f"sv) == R"("\"\\\b\f\n\r\t\u0000\u001f")");
}

TEST_CASE("text that is not UTF-8 is an error or replaced", "[json]") {
  CHECK(code_of([] { return json_quoted("a\xff"); }) == Code::invalid_argument);
  CHECK(json_quoted("a\xff\xfe\"", BadUtf8::replace) == "\"a\xef\xbf\xbd\xef\xbf\xbd\\\"\"");
}

TEST_CASE("a real is the shortest that reads back, and is told from an integer", "[json]") {
  CHECK(json_number(0) == "0.0");
  CHECK(json_number(-0.0) == "-0.0");
  CHECK(json_number(1) == "1.0");
  CHECK(json_number(-2.5) == "-2.5");
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(100000) == "100000.0");
  CHECK(json_number(1e14) == "100000000000000.0");
  CHECK(json_number(1e300) == "1e+300");
  CHECK(json_number(1.5e-7) == "1.5e-07");
  CHECK(json_number(std::numeric_limits<double>::infinity()) == "null");
  CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "null");
}

TEST_CASE("a writer puts commas where they are due", "[json]") {
  std::string out = "text: ";
  dflow::json::Writer writer(out);
  writer.begin_object();
  writer.key("a");
  writer.begin_array();
  writer.end_array();
  writer.key("b");
  writer.begin_array();
  writer.number(1);
  writer.number(1.0);
  writer.number(std::int8_t{-1});
  writer.number(std::numeric_limits<std::uint64_t>::max());
  writer.begin_object();
  writer.end_object();
  writer.string("x");
  writer.boolean(true);
  writer.null();
  writer.end_array();
  writer.key("c\"");
  writer.boolean(false);
  writer.end_object();
  CHECK(out == R"(text: {"a":[],"b":[1,1.0,-1,18446744073709551615,{},"x",true,null],"c\"":false})");
}
