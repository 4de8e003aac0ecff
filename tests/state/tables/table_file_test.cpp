#include <dflow/state/tables/table_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <string>

using namespace dflow;

namespace {

TableEntries entries_of(const std::string& text, const TableFileFormat& format, DType key, DType value) {
  MemoryFileSystem files;
  files.write_file_atomically("/t", text);
  return read_table_file(files, "/t", format, key, value);
}

}  // namespace

TEST_CASE("A table's file that is cut anywhere gives the lines before, or is refused") {
  const std::string text = "1\tone\t0.5\r\n22\ttwo\t1.5\n333\tthree\t-2.5\n";
  const TableFileFormat format{.key_index = 1, .value_index = 2};
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string part = text.substr(0, length);
    std::int64_t count = -1;
    const Code code = code_of([&] { count = entries_of(part, format, DType::string, DType::float64).keys.dim(0); });
    if (code == Code::ok) {
      CHECK((count >= 1 && count <= 3));
    } else {
      CHECK(code == (length == 0 ? Code::out_of_range : Code::invalid_argument));
    }
  }
  const TableEntries whole = entries_of(text, format, DType::string, DType::float64);
  CHECK(bitwise_equal(whole.keys, Tensor<std::string>({3}, {"one", "two", "three"})));
  CHECK(bitwise_equal(whole.values, Tensor<double>({3}, {0.5, 1.5, -2.5})));
}

TEST_CASE("Lines longer than what is read at once, and numbers at the ends of their types, come whole") {
  std::string text;
  for (int i = 0; i < 5; ++i) text += std::string(50'000 + i * 30'000, static_cast<char>('a' + i)) + "\n";
  const TableEntries lines = entries_of(text, {}, DType::string, DType::int64);
  for (int i = 0; i < 5; ++i) {
    const std::string& line = lines.keys.span<std::string>()[static_cast<std::size_t>(i)];
    CHECK(line.size() == 50'000u + static_cast<std::size_t>(i) * 30'000u);
    CHECK(line.find_first_not_of(static_cast<char>('a' + i)) == std::string::npos);
  }
  const TableFileFormat columns{.key_index = 0, .value_index = 1, .delimiter = ' '};
  const TableEntries ends = entries_of("-9223372036854775808 -2147483648\n9223372036854775807 2147483647", columns,
                                       DType::int64, DType::int32);
  CHECK(ends.keys.span<std::int64_t>()[0] == INT64_MIN);
  CHECK(ends.values.span<std::int32_t>()[1] == INT32_MAX);
  CHECK(code_of([&] { entries_of("9223372036854775808 1", columns, DType::int64, DType::int32); }) ==
        Code::invalid_argument);
  CHECK(code_of([&] { entries_of("x", {.offset = INT64_MAX}, DType::string, DType::int64); }) == Code::ok);
  CHECK(code_of([&] { entries_of("x\ny", {.offset = INT64_MAX}, DType::string, DType::int64); }) ==
        Code::invalid_argument);
}

TEST_CASE("A column is only read as a type that it can have") {
  const auto code = [](std::int64_t index, DType dtype) {
    return code_of([&] { entries_of("1\n", {.key_index = index, .value_index = -1}, dtype, DType::int64); });
  };
  CHECK(code(-2, DType::string) == Code::ok);
  CHECK(code(-2, DType::int64) == Code::invalid_argument);
  CHECK(code(-1, DType::int64) == Code::ok);
  CHECK(code(-1, DType::int32) == Code::invalid_argument);
  CHECK(code(0, DType::float32) == Code::ok);
  CHECK(code(0, DType::boolean) == Code::invalid_argument);
  CHECK(code(-3, DType::string) == Code::invalid_argument);
}
