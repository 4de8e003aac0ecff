#include <dflow/io/compression/snappy.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

std::string unpacked_snappy(std::string_view packed, std::uint64_t max_bytes = 1 << 20) {
  return dflow::unsnappy(std::as_bytes(std::span(packed.data(), packed.size())), max_bytes);
}

// A block of a table that TensorFlow wrote (tensorflow/serving,
// testdata/saved_model_half_plus_two_cpu/00000123/variables/variables.index).
constexpr std::string_view packed_block =
    "\x64\x6c\x00\x00\x06\x08\x01\x1a\x02\x08\x01\x00\x01\x0b\x61\x08\x01\x12\x00\x28\x04\x35\x06\x38\x27\x1f\x01\x01"
    "\x0d\x32\x01\x0f\x04\x20\x04\x0d\x11\x0c\x00\x01\x0d\x62\x05\x11\x2c\x08\x28\x04\x35\x10\xfd\x78\x4f\x00\x01\x0d"
    "\x63\x05\x11\x1c\x0c\x28\x04\x35\xef\xd6\x82\xc3\x15\x33\x3c\x10\x28\x04\x35\xef\xd6\x82\xc3\x00\x00\x00\x00\x01"
    "\x00\x00\x00"sv;

}  // namespace

TEST_CASE(
    "a snappy stream is unpacked: literals of any length, copies of each kind, and such that overlap themselves") {
  CHECK(unpacked_snappy("\0"sv).empty());
  CHECK(unpacked_snappy("\5\x10hello"sv) == "hello");
  CHECK(unpacked_snappy("\x3d\xf0\x3c"s + std::string(61, 'x')) == std::string(61, 'x'));          // one byte of length
  CHECK(unpacked_snappy("\xac\2\xf4\x2b\1"s + std::string(300, 'y')) == std::string(300, 'y'));    // two
  CHECK(unpacked_snappy("\xac\2\xf8\x2b\1\0"s + std::string(300, 'y')) == std::string(300, 'y'));  // three
  CHECK(unpacked_snappy("\xac\2\xfc\x2b\1\0\0"s + std::string(300, 'y')) == std::string(300, 'y'));  // four
  CHECK(unpacked_snappy("\xa\4ab\x11\2"sv) == "ababababab");        // 8 bytes from 2 back
  CHECK(unpacked_snappy("\xa\4ab\x1e\2\0"sv) == "ababababab");      // the same with an offset of two bytes
  CHECK(unpacked_snappy("\xa\4ab\x1f\2\0\0\0"sv) == "ababababab");  // of four
  CHECK(unpacked_snappy("\x41\0a\xfe\1\0"sv) == std::string(65, 'a'));
}

TEST_CASE("a snappy stream that TensorFlow wrote is unpacked") {
  const std::string block = unpacked_snappy(packed_block);
  CHECK(block.size() == 100);
  CHECK(block.starts_with("\0\0\6\10\1\32\2\10\1\0\1\13a\10\1"sv));
  CHECK(block.ends_with("\0\0\0\0\1\0\0\0"sv));
}

TEST_CASE("a snappy stream cut short anywhere is DataLoss") {
  for (std::size_t length = 0; length < packed_block.size(); ++length) {
    CHECK(code_of([&] { return unpacked_snappy(packed_block.substr(0, length)); }) == dflow::Code::data_loss);
  }
}

TEST_CASE("a snappy stream that is damaged is DataLoss, and never more than it says") {
  for (const std::string_view damaged :
       {"\5\x10hellox"sv, "\4\x10hello"sv, "\6\x10hello"sv, "\xa\4ab\x11\0"sv, "\xa\4ab\x11\3"sv, "\x9\4ab\x11\2"sv,
        "\xff\xff\xff\xff\x0f\x10hello"sv, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0a"sv, "\5\xfc\xff\xff\xff\xffhello"sv,
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1"sv}) {
    CHECK(code_of([&] { return unpacked_snappy(damaged); }) == dflow::Code::data_loss);
  }
  for (std::size_t bit = 0; bit < 8 * packed_block.size(); ++bit) {
    std::string damaged(packed_block);
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const dflow::Code code = code_of([&] { return unpacked_snappy(damaged); });
    CHECK((code == dflow::Code::ok || code == dflow::Code::data_loss));
  }
}

TEST_CASE("content beyond the limit is ResourceExhausted before it is unpacked") {
  CHECK(code_of([] { return unpacked_snappy(packed_block, 99); }) == dflow::Code::resource_exhausted);
  CHECK(code_of([] { return unpacked_snappy(packed_block, 100); }) == dflow::Code::ok);
}
