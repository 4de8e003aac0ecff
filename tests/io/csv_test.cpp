#include <dflow/io/csv.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>

#include <string>

namespace {

std::string error_of(std::string_view text) {
  try {
    static_cast<void>(dflow::parse_csv(text));
  } catch (const dflow::Error& error) {
    CHECK(error.code() == dflow::Code::data_loss);
    return std::string(error.status().message());
  }
  return "";
}

}  // namespace

TEST_CASE("A CSV of numbers becomes a matrix") {
  const auto table = dflow::parse_csv("1,2.5\r\n\n-3,4e1");
  CHECK(table.shape() == dflow::Shape{2, 2});
  CHECK(table(0, 1) == 2.5f);
  CHECK(table(1, 0) == -3.0f);
  CHECK(table(1, 1) == 40.0f);
  CHECK(dflow::parse_csv("").shape() == dflow::Shape{0, 0});
}

TEST_CASE("What is no number, or a row of another length, is named by line") {
  CHECK(error_of("1,2\n3,x\n") == "line 2: field 2 is not a number");
  CHECK(error_of("1,,2\n") == "line 1: field 2 is not a number");
  CHECK(error_of("1,\n") == "line 1: field 2 is not a number");
  CHECK(error_of("nan\n") == "line 1: field 1 is not a number");
  CHECK(error_of("1,2\n3\n") == "line 2 has 1 fields, the first one 2");
}
