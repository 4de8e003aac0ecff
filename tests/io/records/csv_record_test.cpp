#include <dflow/io/records/csv_record.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <string>
#include <vector>

using namespace dflow;

namespace {
std::vector<std::string> fields_of(std::string_view text, char separator = ',', bool has_quotes = true) {
  CsvRecord record(text, separator, has_quotes);
  std::vector<std::string> fields;
  for (std::string field; record.next(field);) fields.push_back(field);
  return fields;
}
using Fields = std::vector<std::string>;
}  // namespace

TEST_CASE("A record is its fields", "[csv]") {
  CHECK(fields_of("").empty());
  CHECK(fields_of("\r\n").empty());
  CHECK(fields_of("a") == Fields{"a"});
  CHECK(fields_of("a, b ,") == Fields{"a", " b ", ""});
  CHECK(fields_of(",") == Fields{"", ""});
  CHECK(fields_of("\"a,\"\"b\"\"\r\n\",c") == Fields{"a,\"b\"\r\n", "c"});
  CHECK(fields_of("\"a\tb\"\tc", '\t', false) == Fields{"\"a", "b\"", "c"});
  CHECK(fields_of("\na,\r\nb") == Fields{"a", "b"});
}

TEST_CASE("Quotes and line breaks out of place are refused", "[csv]") {
  for (const char* record : {"\"", "\"a", "\"a\"b", "\"a\" ,b", "a\"", "a\nb", "a\n", "\"a\"\n", "\"\"\""}) {
    CHECK(code_of([&] { return fields_of(record); }) == Code::invalid_argument);
  }
}
