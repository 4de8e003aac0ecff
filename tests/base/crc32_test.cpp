#include <dflow/base/files/crc32.hpp>

#include "catch.hpp"

#include <string>
#include <string_view>

TEST_CASE("CRC-32 gives the values of its definition and of Python's zlib.crc32") {
  CHECK(dflow::crc32(std::string_view("123456789")) == 0xcbf43926u);  // the check value of CRC-32/ISO-HDLC
  CHECK(dflow::crc32(std::string_view()) == 0);
  CHECK(dflow::crc32(std::string_view("The quick brown fox jumps over the lazy dog")) == 0x414fa339u);
}

TEST_CASE("a CRC-32 of parts is that of the whole") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CHECK(dflow::crc32_extend(dflow::crc32(bytes.first(cut)), bytes.subspan(cut)) == dflow::crc32(bytes));
  }
}
