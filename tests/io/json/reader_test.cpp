#include <dflow/io/json/reader.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include "support/errors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(DFLOW_TEST_HAS_JSON)
#include <nlohmann/json.hpp>
#endif

using namespace std::string_literals;
using namespace std::string_view_literals;
using dflow::Code;
using dflow::str_cat;

namespace json = dflow::json;

namespace {

/// Notes each event with its offset.
class JsonNotes final : public json::Events {
 public:
  explicit JsonNotes(const std::size_t& at) : at_(at) {}

  std::vector<std::string> notes;

  void null() override { note("null"); }
  void boolean(bool value) override { note(value ? "true" : "false"); }
  void number(std::string_view spelling) override { note(str_cat("number ", spelling)); }
  void string(std::string_view text) override { note(str_cat("string ", text)); }
  void key(std::string_view name) override { note(str_cat("key ", name)); }
  void begin_object() override { note("{"); }
  void end_object() override { note("}"); }
  void begin_array() override { note("["); }
  void end_array() override { note("]"); }

 private:
  void note(std::string_view what) { notes.push_back(str_cat(at_, " ", what)); }

  const std::size_t& at_;
};

std::vector<std::string> json_notes(std::string_view text) {
  std::size_t at = 0;
  JsonNotes events(at);
  const std::optional<json::Problem> problem = json::try_read(text, events, {}, at);
  INFO(text << ": " << (problem ? problem->what : ""));
  CHECK(!problem);
  return events.notes;
}

/// The error as "offset: text", or an empty string for valid JSON.
std::string json_problem(std::string_view text, const json::Limits& limits = {}) {
  std::size_t at = 0;
  JsonNotes events(at);
  const std::optional<json::Problem> problem = json::try_read(text, events, limits, at);
  return problem ? str_cat(problem->offset, ": ", problem->what) : std::string();
}

bool is_json(std::string_view text) { return json_problem(text).empty(); }

}  // namespace

TEST_CASE("JSON is read piece by piece, each piece with its place", "[json]") {
  using Notes = std::vector<std::string>;
  CHECK(json_notes(R"({"a": [1, -2.50e+3, "x"], "b": {}, "": [null, true, false]})") ==
        Notes{"0 {", "4 key a", "6 [", "8 number 1", "18 number -2.50e+3", "23 string x", "23 ]", "29 key b", "31 {",
              "32 }", "37 key ", "39 [", "44 null", "50 true", "57 false", "57 ]", "58 }"});
  CHECK(json_notes(" 7 ") == Notes{"2 number 7"});
  CHECK(json_notes("\xef\xbb\xbf[0]") == Notes{"3 [", "5 number 0", "5 ]"});
}

TEST_CASE("a number keeps its spelling, and one that is none is refused", "[json]") {
  for (const char* number :
       {"0", "-0", "7", "-12", "0.5", "-0.0", "1e5", "1E+5", "1e-5", "0e400", "0E+400", "1e999", "-1.5e-999",
        "184467440737095516155", "0.1000000000000000055511151231257827", "123456789012345678901234567890.5"}) {
    for (const auto& [before, behind] : {std::pair("", ""), std::pair("[", "]"), std::pair("[1,", ",2]")}) {
      CAPTURE(number, before);
      const std::vector<std::string> notes = json_notes(str_cat(before, number, behind));
      CHECK(std::find_if(notes.begin(), notes.end(), [&](const std::string& note) {
              return note.ends_with(str_cat("number ", number));
            }) != notes.end());
    }
  }
  const std::string long_number = std::string(1000, '9') + "." + std::string(1000, '1');
  CHECK(json_notes(long_number).at(0) == str_cat("2001 number ", long_number));
  for (const char* number :
       {"01",   "00",       "-01",       "1.",    "1.e5",  ".5",    "+1",  "-",      "--1",  "-+1", "1e",
        "1e+",  "1ee5",     "0.5.3",     "1e5.3", "1e5e3", "1-",    "1-2", "1+2",    "0x10", "1f",  "NaN",
        "-NaN", "Infinity", "-Infinity", "inf",   "1 2",   "1_000", "-.5", "1e400-", "0-"}) {
    CAPTURE(number);
    CHECK(!is_json(number));
    CHECK(!is_json(str_cat("[", number, "]")));
    CHECK(!is_json(str_cat("[0,", number, ",0]")));
    CHECK(!is_json(str_cat("{\"a\":", number, "}")));
  }
}

TEST_CASE("a string has the escapes of JSON, and digits in it are no numbers", "[json]") {
  CHECK(json_notes(R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00\u0000x")")
            .at(0)
            .ends_with("string \"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0x"s));
  CHECK(json_notes(R"("-1\"2\\")").at(0) == "9 string -1\"2\\");
  CHECK(json_notes(R"({"1":"01","2.":3})") ==
        std::vector<std::string>{"0 {", "4 key 1", "9 string 01", "14 key 2.", "16 number 3", "16 }"});
  for (const char* text : {"\"", "\"a", "\"\\", "\"\\\"", "\"\\q\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\tb\"", "\"a\nb\"",
                           "'a'", "\"\\x41\""}) {
    CAPTURE(text);
    CHECK(!is_json(text));
  }
}

TEST_CASE("halves of surrogate pairs and bytes that are not UTF-8 are refused", "[json]") {
  for (const char* text :
       {R"("\ud800")", R"("\udc00")", R"("\udfffx")", R"("\ud800\ud800")", R"("\ud800x")", R"({"\udc00": 1})"}) {
    CAPTURE(text);
    CHECK(contains(json_problem(text), "half a surrogate pair"));
  }
  CHECK(is_json(R"("\ud7ff\ue000\ud800\udc00\udbff\udfff")"));
  CHECK(is_json("\"\xed\x9f\xbf\xee\x80\x80\""));  // the characters beside the surrogates
  for (const char* bytes : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xed\xb0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xe2\x28\xa1", "\xff"}) {
    CHECK(contains(json_problem(str_cat("[\"ab", bytes, "\"]")), "4: a string is not UTF-8"));
  }
  for (const char* text : {"\xef{}", "\xef\xbb{}", "\xbb{}", "{}\xef\xbb\xbf", "\xff\xfe{}"}) CHECK(!is_json(text));
}

TEST_CASE("what is no JSON is refused where it is none", "[json]") {
  CHECK(json_problem("") == "0: there is no value");
  CHECK(json_problem("  ") == "2: there is no value");
  CHECK(json_problem("{} x") == "3: the text goes on after its value");
  CHECK(json_problem("[1,]") == "3: a value is due");
  CHECK(json_problem("{\"a\":1,}") == "7: a name in quotes is due");
  CHECK(json_problem("{a:1}") == "1: a name in quotes is due");
  CHECK(json_problem("{\"a\" 1}") == "5: ':' is due");
  CHECK(json_problem("{\"a\":1 \"b\":2}") == "7: ',' or '}' is due");
  CHECK(json_problem("[1 2]") == "3: ',' or ']' is due");
  CHECK(json_problem("[1\v]") == "2: ',' or ']' is due");
  CHECK(json_problem("[tru]") == "4: a value is due");
  for (const char* text : {"[",
                           "{",
                           "[1",
                           "[1,",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "]",
                           "}",
                           "[}",
                           "{]",
                           ",",
                           ":",
                           "nul",
                           "nulll",
                           "True",
                           "// c\n{}",
                           "/* c */{}",
                           "{} // c",
                           "[1,,2]",
                           "{,}",
                           "{\"a\":1,,\"b\":2}",
                           "{1:2}",
                           "[\"a\":1]",
                           "{\"a\",\"b\"}",
                           "undefined"}) {
    CAPTURE(text);
    CHECK(!is_json(text));
  }
}

TEST_CASE("a zero byte is refused wherever it is", "[json]") {
  for (const std::string_view text : {"\0"sv, "{}\0"sv, "{}\0{}"sv, "[\"a\0b\"]"sv, "[1\0]"sv}) {
    CHECK(json_problem(text) == str_cat(text.find('\0'), ": there is a zero byte"));
  }
}

TEST_CASE("an error names the line and the offset", "[json]") {
  std::size_t at = 0;
  JsonNotes events(at);
  CHECK(
      contains(error_of([&] { json::read("{\n\"a\": 1,\n\"b\": x}", events); }), "line 3, offset 15: a value is due"));
  CHECK(contains(error_of([&] { json::read("", events); }), "line 1, offset 0: there is no value"));
}

TEST_CASE("objects and arrays are as deep as the limit, and ten million are refused without their memory", "[json]") {
  const json::Limits limits{.max_depth = 3};
  CHECK(json_problem("[[[1]]]", limits).empty());
  CHECK(json_problem("[{\"a\":[]},[[]],{}]", limits).empty());
  CHECK(json_problem("[[[[]]]]", limits) == "3: nested deeper than 3");
  CHECK(json_problem("[[{\"a\":{}}]]", limits) == "7: nested deeper than 3");
  CHECK(json_problem(std::string(10'000'000, '[')) == "32: nested deeper than 32");
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  CHECK(json_problem(objects) == "160: nested deeper than 32");
}

TEST_CASE("a text may be as long as the limit", "[json]") {
  CHECK(json_problem("[1,2]", {.max_bytes = 5}).empty());
  CHECK(json_problem("[1,2]", {.max_bytes = 4}) == "4: the text has more than 4 bytes");
}

TEST_CASE("a name stands once in an object, unless it may stand twice", "[json]") {
  CHECK(json_problem(R"({"a":1,"a":2})") == "10: member 'a' stands twice");
  CHECK(json_problem(R"({"a":1,"\u0061":2})") == "15: member 'a' stands twice");
  CHECK(json_problem(R"({"x":{"a":1,"b":[{"a":2}]},"a":3})").empty());
  CHECK(json_problem(R"({"x":{"a":1,"b":[{"a":2}],"a":3}})") == "29: member 'a' stands twice");
  CHECK(json_problem(R"({"a":1,"a":2})", {.allows_duplicates = true}).empty());
  CHECK(json_problem(str_cat("{\"", std::string(100, 'n'), "\":1,\"", std::string(100, 'n'), "\":1}")).size() < 130);
}

TEST_CASE("what an event throws ends the reading", "[json]") {
  class Thrower final : public json::Events {
   public:
    void null() override { dflow::throw_error(dflow::Status::data_loss("null")); }
    void boolean(bool) override {}
    void number(std::string_view) override {}
    void string(std::string_view) override {}
    void key(std::string_view) override {}
    void begin_object() override {}
    void end_object() override {}
    void begin_array() override {}
    void end_array() override {}
  } events;
  CHECK(code_of([&] { json::read("{\"a\": [1, {\"b\": null}]}", events); }) == Code::data_loss);
}

#if defined(DFLOW_TEST_HAS_JSON)
TEST_CASE("what is JSON to another reader is JSON, and nothing else", "[json]") {
  const std::string_view pieces[] = {"{",    "}",    "[",    "]",    ",",     ":",        "\"a\"", "\"b\"", "\"\\u",
                                     "d800", "dc00", "00e9", "\"",   "\\",    "0",        "1",     "-",     ".",
                                     "e",    "+",    "E5",   "12.5", "null",  "true",     "false", " ",     "\n",
                                     "\xc3", "\xa9", "\xed", "\xa0", "[1,2]", "{\"k\":3}"};
  std::mt19937 random(7);
  int num_accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) text += pieces[random() % std::size(pieces)];
    std::size_t at = 0;
    JsonNotes events(at);
    const bool is_read = !json::try_read(text, events, {.allows_duplicates = true}, at);
    num_accepted += is_read ? 1 : 0;
    if (is_read != nlohmann::json::accept(text)) FAIL(text << " is read: " << is_read);
  }
  CHECK(num_accepted > 1000);
}
#endif
