#include <dflow/io/csv_columns.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <cstdint>
#include <string>
#include <string_view>

using dflow::CsvOptions;
using dflow::read_csv_columns;

namespace {

/// A file system with one file.
struct Files {
  explicit Files(std::string_view text) { system.write_file_atomically("t.csv", text); }
  operator dflow::FileSystem&() { return system; }

  dflow::MemoryFileSystem system;
};

/// The message of the DataLoss for a table that is read as text and as whole numbers.
std::string error_of_table(std::string_view text) {
  Files files(text);
  return error_of(
      [&] {
        return read_csv_columns<std::string, std::int64_t>(files, "t.csv", {"a", "b"});
      },
      dflow::Code::data_loss);
}

}  // namespace

TEST_CASE("columns of text, of large whole numbers and of floats are read by their names") {
  Files files("id, city ,\"price, net\",rest\n9007199254740993, \"Rome, the old\",1.5,x\n+2,,-2e3,\n3, Bern , 0,y\n");
  const auto [city, id, price] =
      read_csv_columns<std::string, std::int64_t, double>(files, "t.csv", {"city", "id", "price, net"});
  CHECK(city.to_string() == R"(string[3] ["Rome, the old", "", "Bern"])");
  CHECK(id.to_string() == "int64[3] [9007199254740993, 2, 3]");
  CHECK(price.to_string() == "double[3] [1.5, -2000, 0]");
}

TEST_CASE("columns have numbers too, and may be read twice") {
  Files files("1;one\n2;two\n");
  const CsvOptions options{.separator = ';'};
  const std::string name = "t.csv";
  const auto [text, number, again] =
      read_csv_columns<std::string, std::int32_t, float>(files, name, {1, 0, 0}, options);
  CHECK(text.to_string() == R"(string[2] ["one", "two"])");
  CHECK(number.to_string() == "int32[2] [1, 2]");
  CHECK(again.to_string() == "float[2] [1, 2]");
}

TEST_CASE("a field that its element type cannot hold is named by line, field and type") {
  CHECK(contains(error_of_table("a,b\n1,2\nx,3.5\n"), "t.csv: line 3: field 2 ('b') is not of type int64: '3.5'"));
  CHECK(contains(error_of_table("a,b\n\n1,\n"), "line 3: field 2 ('b') is not of type int64: ''"));
  CHECK(contains(error_of_table("a,b\n1,9223372036854775808\n"), "is not of type int64"));
  CHECK(contains(error_of_table("a,b\n1,2\n3\n"), "line 3 has 1 fields, the header 2"));
  CHECK(contains(error_of_table("a,b\n"), "t.csv: the file holds no row, only a header"));
  CHECK(contains(error_of_table("\n"), "t.csv: the file holds no row"));
  CHECK(contains(error_of_table("a,b\n1,\"2"), "line 2: field 2 has a quote that does not end"));
  Files files("x\n1e39\nnan\n");
  const std::string hint = "CsvOptions::has_header says";
  CHECK(contains(error_of([&] { return read_csv_columns<float>(files, "t.csv", {0}, {}); }, dflow::Code::data_loss),
                 hint));
  CHECK(contains(error_of([&] { return read_csv_columns<float>(files, "t.csv", {0}); }, dflow::Code::data_loss),
                 "line 2: field 1 ('x') is not of type float: '1e39'"));
}

TEST_CASE("a column that is not there is an error that names the path and the columns") {
  Files files("a,b\n1,2\n");
  CHECK(contains(error_of([&] { return read_csv_columns<float>(files, "t.csv", {"c"}); }, dflow::Code::not_found),
                 "t.csv: the table has no column 'c', its columns are 'a', 'b'"));
  for (const std::int64_t number : {-1, 2}) {
    const std::string wanted = "t.csv: the table has no column " + std::to_string(number) + ", it has 2 columns";
    CHECK(contains(error_of([&] { return read_csv_columns<float>(files, "t.csv", {number}); }), wanted));
  }
  CHECK(contains(error_of([&] { return read_csv_columns<float>(files, "t.csv", {"a"}, {}); }, dflow::Code::not_found),
                 "CsvOptions::has_header"));
  CHECK(code_of([&] { return read_csv_columns<float>(files, "none.csv", {"a"}); }) == dflow::Code::not_found);
  // As pandas writes an index: a column without a name.
  Files index(",a\n0,1\n");
  const auto [numbers] = read_csv_columns<std::int32_t>(index, "t.csv", {""});
  CHECK(numbers(0) == 0);
}
