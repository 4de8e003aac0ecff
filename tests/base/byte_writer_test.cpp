#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace dflow;

TEST_CASE("what is written is read back", "[byte_writer]") {
  std::vector<std::byte> out;
  ByteWriter writer(out);
  writer.u8(1);
  writer.u16(2);
  writer.u32(3);
  writer.u64(4);
  writer.i32(-5);
  writer.i64(-6);
  writer.f32(0.5f);
  writer.f64(-0.25);
  writer.boolean(true);
  writer.string("text");
  writer.blob(std::as_bytes(std::span("xy", 2)));
  writer.bytes(std::as_bytes(std::span("z", 1)));
  CHECK(writer.position() == out.size());

  ByteReader reader(out);
  CHECK(reader.u8() == 1);
  CHECK(reader.u16() == 2);
  CHECK(reader.u32() == 3);
  CHECK(reader.u64() == 4);
  CHECK(reader.i32() == -5);
  CHECK(reader.i64() == -6);
  CHECK(reader.f32() == 0.5f);
  CHECK(reader.f64() == -0.25);
  CHECK(reader.boolean());
  CHECK(reader.string() == "text");
  CHECK(reader.blob().size() == 2);
  CHECK(reader.bytes(1)[0] == std::byte{'z'});
  CHECK(reader.at_end());
}

TEST_CASE("varints of both signs come back at every length", "[byte_writer]") {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t value : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      std::string out;
      ByteWriter(out).varint(value);
      CHECK(out.size() <= 10);
      CHECK(ByteReader(out).varint() == value);
      out.clear();
      ByteWriter(out).signed_varint(static_cast<std::int64_t>(value));
      CHECK(ByteReader(out).signed_varint() == static_cast<std::int64_t>(value));
    }
  }
  std::string out;
  ByteWriter(out).signed_varint(-1);
  CHECK(out == "\x01");
}

TEST_CASE("it appends to what is there and can overwrite a length", "[byte_writer]") {
  std::string out = "head";
  ByteWriter writer(out);
  const std::size_t at = writer.position();
  writer.u32(0);
  writer.string("body");
  writer.patch_u32(at, 5);
  CHECK(out == std::string("head\x05\0\0\0\x04"
                           "body",
                           13));
  CHECK_THROWS_AS(writer.patch_u32(10, 1), Error);
  CHECK_THROWS_AS(writer.patch_u32(std::numeric_limits<std::size_t>::max(), 1), Error);
}
