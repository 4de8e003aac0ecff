#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {
std::string sample() {
  std::string out;
  ByteWriter writer(out);
  writer.u8(7);
  writer.u32(0xdeadbeef);
  writer.f64(-2.5);
  writer.boolean(true);
  writer.varint(300);
  writer.signed_varint(-3);
  writer.string("layer1/weights");
  writer.count(3);
  for (int i = 0; i < 3; ++i) writer.string("abc");
  return out;
}

void read_sample(std::string_view bytes) {
  ByteReader reader(bytes);
  reader.u8();
  reader.u32();
  reader.f64();
  reader.boolean();
  reader.varint();
  reader.signed_varint();
  std::vector<std::string> texts{std::string(reader.string())};
  const std::size_t items = reader.count(1);
  texts.reserve(items);
  for (std::size_t i = 0; i < items; ++i) texts.emplace_back(reader.string());
  reader.expect_end();
}
}  // namespace

TEST_CASE("fixed numbers are little-endian", "[byte_reader]") {
  ByteReader reader("\x01\x02\x03\x04\x05\x06\xff\xff"sv);
  CHECK(reader.u16() == 0x0201);
  CHECK(reader.u32() == 0x06050403);
  CHECK(reader.fixed<std::int16_t>() == -1);
  CHECK(reader.at_end());
  CHECK(code_of([&] { reader.u8(); }) == Code::data_loss);
}

TEST_CASE("varints are read at any length and refused beyond 64 bits", "[byte_reader]") {
  CHECK(ByteReader("\x00"sv).varint() == 0);
  CHECK(ByteReader("\xac\x02"sv).varint() == 300);
  CHECK(ByteReader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).varint() == std::numeric_limits<std::uint64_t>::max());
  for (const auto bad : {""sv, "\x80"sv, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv,
                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv}) {
    ByteReader reader(bad);
    CHECK(code_of([&] { reader.varint(); }) == Code::data_loss);
    CHECK(reader.position() == 0);
  }
}

TEST_CASE("a length beyond the input is refused before anything is allocated", "[byte_reader]") {
  std::string out;
  ByteWriter(out).varint(std::numeric_limits<std::uint64_t>::max());
  ByteReader reader(out);
  CHECK(code_of([&] { reader.string(); }) == Code::data_loss);
  CHECK(reader.position() == 0);
  CHECK(code_of([&] { reader.count(8); }) == Code::out_of_range);
  CHECK(code_of([&] { reader.bytes(std::numeric_limits<std::size_t>::max()); }) == Code::data_loss);
  CHECK(code_of([&] { reader.skip(out.size() + 1); }) == Code::data_loss);
}

TEST_CASE("a count must leave room for its items", "[byte_reader]") {
  CHECK(ByteReader("\x03"
                   "abc"sv)
            .count(1) == 3);
  CHECK(code_of([] {
          ByteReader(
              "\x03"
              "ab"sv)
              .count(1);
        }) == Code::data_loss);
  CHECK(ByteReader("\x03"sv).count(0) == 3);
  ByteReaderLimits limits;
  limits.max_count = 2;
  CHECK(code_of([&] { ByteReader("\x03"sv, limits).count(0); }) == Code::out_of_range);
}

TEST_CASE("a length limit and a depth limit hold", "[byte_reader]") {
  ByteReaderLimits limits;
  limits.max_length = 2;
  limits.max_depth = 2;
  ByteReader reader(
      "\x03"
      "abc"sv,
      limits);
  CHECK(code_of([&] { reader.string(); }) == Code::out_of_range);
  {
    const auto first = reader.enter();
    const auto second = reader.enter();
    CHECK(code_of([&] { (void)reader.enter(); }) == Code::out_of_range);
  }
  CHECK_NOTHROW((void)reader.enter());
}

TEST_CASE("a boolean is 0 or 1", "[byte_reader]") {
  CHECK(ByteReader("\x01"sv).boolean());
  CHECK_FALSE(ByteReader("\x00"sv).boolean());
  CHECK(code_of([] { ByteReader("\x02"sv).boolean(); }) == Code::data_loss);
}

TEST_CASE("errors name the offset", "[byte_reader]") {
  ByteReader reader("abc"sv);
  reader.u8();
  CHECK_THROWS_WITH(reader.u32(), Catch::Matchers::Contains("4 bytes needed at offset 1, 2 left"));
  CHECK_THROWS_WITH(reader.expect_end(), Catch::Matchers::Contains("2 bytes left over at offset 1"));
}

TEST_CASE("every truncation is data loss", "[byte_reader]") {
  const std::string whole = sample();
  REQUIRE_NOTHROW(read_sample(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that AddressSanitizer sees a read past the end.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(code_of([&] { read_sample({cut.data(), cut.size()}); }) == Code::data_loss);
  }
}

TEST_CASE("random damage gives an error or a value, never more", "[byte_reader]") {
  std::mt19937 random(20240601);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = sample();
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Code code = code_of([&] { read_sample(bytes); });
    if (code != Code::ok && code != Code::data_loss && code != Code::out_of_range) FAIL("round " << round);
  }
}
