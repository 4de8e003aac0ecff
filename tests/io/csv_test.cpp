#include <dflow/io/csv.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

std::string error_of_csv(std::string_view text) {
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

TEST_CASE("Lines of a CSV end in LF, CR LF or CR") {
  for (const std::string end : {"\n", "\r\n", "\r", "\r\r\n", " \r"}) {
    const auto table = dflow::parse_csv_table("x, \"y\"" + end + "1,2 " + end + end + "3,\"4\"" + end);
    CHECK(table.names == std::vector<std::string>{"x", "y"});
    CHECK(table.values.to_string() == "float[2,2] [[1, 2], [3, 4]]");
    CHECK(dflow::parse_csv("1" + end + "2" + end + "3").shape() == dflow::Shape{3, 1});
  }
  CHECK(error_of_csv("1\r2\r\n3\n4\rx") == "line 5: field 1 is not a number: 'x'");
  CHECK(status_of([] { return dflow::parse_csv_table("\"a\rb\nc\r\nd\",e\r1,2\r3,x\r"); }).message() ==
        "line 6: field 2 ('e') is not a number: 'x'");
  CHECK(status_of([] { return dflow::parse_csv_table("\"\na\",e\n3,x\n"); }).message() ==
        "line 3: field 2 ('e') is not a number: 'x'");
  CHECK(dflow::parse_csv_table("\"a\rb\"\r1\r").names == std::vector<std::string>{"a\rb"});
}

TEST_CASE("A CSV that cannot be read says why") {
  CHECK(error_of_csv(std::string("\xff\xfe"
                                 "1\0\n\0",
                                 6)) == "the text is UTF-16: save it as UTF-8");
  CHECK(error_of_csv(std::string("\xfe\xff\0"
                                 "1\0\n",
                                 6)) == "the text is UTF-16: save it as UTF-8");
  CHECK(error_of_csv(std::string("1\n\0"
                                 "2",
                                 4)) == "line 2: field 1 is not a number: '\\x002'");
  for (const char separator : {'\n', '\r', '"'}) {
    const auto status = status_of([&] { return dflow::parse_csv("1\n", {.separator = separator}); });
    CHECK(status.code() == dflow::Code::invalid_argument);
    CHECK(mentions(status, "cannot be separated by"));
  }
}

TEST_CASE("A CSV may have names, spaces, signs and quotes") {
  const dflow::CsvOptions named{.has_header = true};
  const auto table =
      dflow::parse_csv_table("\xef\xbb\xbf width , \"height, in \"\"cm\"\"\"\r\n 1 ,\t+2.5\r\n\"-3\", \"4\" \r\n  \n");
  CHECK(table.names == std::vector<std::string>{"width", "height, in \"cm\""});
  CHECK(table.values.to_string() == "float[2,2] [[1, 2.5], [-3, 4]]");
  CHECK(table.column("width").to_string() == "float[2] [1, -3]");
  CHECK(table.index_of("height, in \"cm\"") == 1);
  CHECK_THROWS_WITH(table.column("depth"), Catch::Matchers::Contains("no column 'depth'"));
  CHECK(dflow::parse_csv("a,b\n1,2", named).shape() == dflow::Shape{1, 2});
  CHECK(dflow::parse_csv("a,b\n", named).shape() == dflow::Shape{0, 2});
  CHECK(dflow::parse_csv("1;2\n3;4", {.separator = ';'})(1, 0) == 3.0f);
  CHECK(dflow::parse_csv("1\t2\n3\t 4", {.separator = '\t'})(1, 1) == 4.0f);
  CHECK(dflow::parse_csv_table("\"two\nlines\",b\n1,2\n").names[0] == "two\nlines");
}

TEST_CASE("A column that is missing is answered with the file and the columns that it has") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("houses.csv", std::string_view("rooms,price\n3,120\n"));
  const auto table = dflow::read_csv_table(files, "houses.csv");
  CHECK(table.path == "houses.csv");
  CHECK(table.column("price")(0) == 120);
  const dflow::Status missing = status_of([&] { return table.column("area"); });
  CHECK(missing.code() == dflow::Code::not_found);
  CHECK(missing.message() == "houses.csv: the table has no column 'area', its columns are 'rooms', 'price'");
  CHECK(status_of([] { return dflow::parse_csv_table("a\n1\n").index_of("b"); }).message() ==
        "the table has no column 'b', its columns are 'a'");
  CHECK(mentions(status_of([] { return dflow::parse_csv_table("1\n", {}).index_of("b"); }), "CsvOptions::has_header"));
  std::string wide = "0";
  for (int i = 1; i < 25; ++i) wide += "," + std::to_string(i);
  CHECK(mentions(status_of([&] { return dflow::parse_csv_table(wide + "\n").index_of("b"); }), "'19' and 5 more"));
}

TEST_CASE("A file without a row is DataLoss and named, also where it has a header") {
  dflow::MemoryFileSystem files;
  for (const char* content : {"", "\n \r\n", "\xef\xbb\xbf"}) {
    files.write_file_atomically("empty.csv", std::string_view(content));
    const dflow::Status status = status_of([&] { return dflow::read_csv(files, "empty.csv"); });
    CHECK(status.code() == dflow::Code::data_loss);
    CHECK(status.message() == "empty.csv: the file holds no row");
    CHECK(status_of([&] { return dflow::read_csv_table(files, "empty.csv"); }) == status);
  }
  files.write_file_atomically("header.csv", std::string_view("a,b\n"));
  const dflow::Status header = status_of([&] { return dflow::read_csv_table(files, "header.csv"); });
  CHECK(header.code() == dflow::Code::data_loss);
  CHECK(header.message() == "header.csv: the file holds no row, only a header");
}

TEST_CASE("What is no number, or a row of another length, is named by line and field") {
  const std::string hint = "; CsvOptions::has_header says that the first line holds names";
  CHECK(error_of_csv("1,2\n3,x\n") == "line 2: field 2 is not a number: 'x'");
  CHECK(error_of_csv("1,,2\n") == "line 1: field 2 is not a number: ''" + hint);
  CHECK(error_of_csv("1,\n") == "line 1: field 2 is not a number: ''" + hint);
  CHECK(error_of_csv("nan\n") == "line 1: field 1 is not a number: 'nan'" + hint);
  CHECK(error_of_csv("1\n+-1\n") == "line 2: field 1 is not a number: '+-1'");
  CHECK(error_of_csv("1\n++1\n") == "line 2: field 1 is not a number: '++1'");
  CHECK(error_of_csv("1\n1 2\n") == "line 2: field 1 is not a number: '1 2'");
  CHECK(error_of_csv("1,2\n3\n") == "line 2 has 1 fields, the first one 2");
  CHECK(error_of_csv("1,2\n3,4,x\n") == "line 2 has 3 fields, the first one 2");
  CHECK(error_of_csv("1,2\n\n3,\"4\n") == "line 3: field 2 has a quote that does not end");
  CHECK(error_of_csv("1,2\n\"3\"4,5\n") == "line 2: field 1 goes on after its quotes");
  CHECK_THROWS_WITH(dflow::parse_csv("x,y\n1,2\n3,?\n", {.has_header = true}),
                    Catch::Matchers::Contains("line 3: field 2 ('y') is not a number: '?'"));
  CHECK_THROWS_WITH(dflow::parse_csv("x,y\n1\n", {.has_header = true}),
                    Catch::Matchers::Contains("line 2 has 1 fields, the header 2"));
}

TEST_CASE("What float rounds to 0 is a number, what it rounds to infinity is none") {
  const auto row = dflow::parse_csv("1e-45,1e-46,1e-50,-1e-50,+1e-400,-1E-400,3.4028235e38");
  CHECK(row(0, 0) == std::numeric_limits<float>::denorm_min());
  for (int i = 1; i < 6; ++i) {
    CHECK(row(0, i) == 0.0f);
    CHECK(std::signbit(row(0, i)) == (i == 3 || i == 5));
  }
  CHECK(row(0, 6) == std::numeric_limits<float>::max());
  for (const std::string text : {"1e39", "-1e39", "1e400", "-1e400"}) {
    CHECK(error_of_csv("1\n" + text) == "line 2: field 1 is not a number: '" + text + "'");
  }
  CHECK(error_of_csv("1\n1e-50x") == "line 2: field 1 is not a number: '1e-50x'");
}

TEST_CASE("Columns of a table are taken by number") {
  const dflow::Tensor<float> table({{1, 2, 3}, {4, 5, 6}});
  CHECK(dflow::columns(table, 1, 3).to_string() == "float[2,2] [[2, 3], [5, 6]]");
  CHECK(dflow::columns(table, 3, 3).shape() == dflow::Shape{2, 0});
  CHECK(dflow::column(table, 0).to_string() == "float[2] [1, 4]");
  CHECK_THROWS_WITH(dflow::columns(table, 2, 4), Catch::Matchers::Contains("columns [2, 4) are not in a table"));
  CHECK_THROWS_WITH(dflow::columns(table, -1, 1), Catch::Matchers::Contains("shape [2,3]"));
  CHECK_THROWS_WITH(dflow::columns(dflow::column(table, 0), 0, 1), Catch::Matchers::Contains("shape [2]"));
}
