#include <dflow/io/idx.hpp>

#include "catch.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <string>
#include <string_view>

using namespace std::string_view_literals;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

dflow::Code code_of_idx(std::string_view file) {
  try {
    static_cast<void>(dflow::parse_idx(bytes_of(file)));
  } catch (const dflow::Error& error) {
    return error.code();
  }
  return dflow::Code::ok;
}

constexpr std::string_view two_by_three = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\xff"sv;

}  // namespace

TEST_CASE("An IDX file of bytes becomes a tensor of its extents") {
  const dflow::Tensor<std::uint8_t> tensor(dflow::parse_idx(bytes_of(two_by_three)));
  CHECK(tensor.shape() == dflow::Shape{2, 3});
  CHECK(tensor(0, 0) == 1);
  CHECK(tensor(1, 2) == 255);
}

TEST_CASE("Wider IDX elements are read as big-endian numbers") {
  const dflow::Tensor<std::int16_t> shorts(dflow::parse_idx(bytes_of("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe"sv)));
  CHECK(shorts(0) == 0x0102);
  CHECK(shorts(1) == -2);
  const dflow::Tensor<float> floats(dflow::parse_idx(bytes_of("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0"sv)));
  CHECK(floats(0) == 1.0f);
  const dflow::Tensor<double> doubles(dflow::parse_idx(bytes_of("\0\0\x0e\0\xbf\xf0\0\0\0\0\0\0"sv)));
  CHECK(doubles.scalar() == -1.0);
}

TEST_CASE("An IDX file without elements is an empty tensor, whatever its other extents") {
  const auto tensor = dflow::parse_idx(bytes_of("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"sv));
  CHECK(tensor.num_elements() == 0);
  CHECK(tensor.dim(2) == 0);
}

TEST_CASE("Damaged IDX files are DataLoss") {
  for (std::size_t length = 0; length < two_by_three.size(); ++length) {
    CHECK(code_of_idx(two_by_three.substr(0, length)) == dflow::Code::data_loss);
  }
  CHECK(code_of_idx(std::string(two_by_three) + "x") == dflow::Code::data_loss);
  CHECK(code_of_idx("\1\0\x08\0\0"sv) == dflow::Code::data_loss);
  CHECK(code_of_idx("\0\0\x07\0\0"sv) == dflow::Code::data_loss);
  CHECK(code_of_idx("\0\0\x08\x09"sv) == dflow::Code::data_loss);
  CHECK(code_of_idx("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv) == dflow::Code::data_loss);
  CHECK(code_of_idx("\0\0\x08\x02\x80\0\0\0\x80\0\0\0"sv) == dflow::Code::data_loss);
}

TEST_CASE("Errors of an IDX file name its path") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/bad", std::string_view("not idx"));
  CHECK_THROWS_WITH(dflow::read_idx(files, "/bad"),
                    Catch::Matchers::Contains("/bad") && Catch::Matchers::Contains("magic"));
  try {
    static_cast<void>(dflow::read_idx(files, "/none"));
    FAIL("no error");
  } catch (const dflow::Error& error) {
    CHECK(error.code() == dflow::Code::not_found);
  }
}
