#include <dflow/base/files/crc32c.hpp>

#include "catch.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace dflow;

namespace {
std::vector<std::byte> bytes_of(auto&& byte_at) {
  std::vector<std::byte> bytes(32);
  for (int i = 0; i < 32; ++i) bytes[static_cast<std::size_t>(i)] = std::byte(byte_at(i));
  return bytes;
}

/// A bit at a time, straight from the polynomial.
std::uint32_t crc32c_by_bits(std::uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}
}  // namespace

// RFC 3720 section B.4.
TEST_CASE("the answers of RFC 3720 come out, by instructions and by tables", "[crc32c]") {
  const std::vector<std::uint8_t> iscsi_read = {0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                                0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                                                0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                                                0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  const auto read_bytes = std::as_bytes(std::span(iscsi_read));
  const struct {
    std::vector<std::byte> bytes;
    std::uint32_t crc;
  } rows[] = {{bytes_of([](int) { return 0; }), 0x8a9136aau},
              {bytes_of([](int) { return 0xff; }), 0x62a8ab43u},
              {bytes_of([](int i) { return i; }), 0x46dd794eu},
              {bytes_of([](int i) { return 31 - i; }), 0x113fdb5cu},
              {{read_bytes.begin(), read_bytes.end()}, 0xd9963a56u}};
  for (const auto& [bytes, crc] : rows) {
    CHECK(crc32c(bytes) == crc);
    CHECK(detail::crc32c_extend_by_tables(0, bytes) == crc);
  }
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c("") == 0);
}

TEST_CASE("a checksum extends over any split, and both ways agree", "[crc32c]") {
  std::mt19937 random(7);
  std::string text(257, '\0');
  for (char& c : text) c = static_cast<char>(random());
  const auto bytes = std::as_bytes(std::span(text));
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    CHECK(crc32c_extend(crc32c(bytes.first(split)), bytes.subspan(split)) == whole);
    CHECK(detail::crc32c_extend_by_tables(0, bytes.subspan(split)) == crc32c(bytes.subspan(split)));
  }
}

TEST_CASE("long stretches have the checksum that tables give", "[crc32c]") {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(40'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const std::size_t size : {6143u, 6144u, 6145u, 12'288u, 18'431u, 40'000u}) {
    const auto part = std::span<const std::byte>(bytes).first(size);
    CHECK(crc32c(part) == detail::crc32c_extend_by_tables(0, part));
    CHECK(crc32c_extend(0x12345678u, part) == detail::crc32c_extend_by_tables(0x12345678u, part));
  }
}

TEST_CASE("every length at every alignment has the checksum that tables give", "[crc32c]") {
  std::mt19937 random(8);
  std::vector<std::byte> bytes(1'200 + 64);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  bool agree = true;
  for (std::size_t size = 0; size <= 1'200; ++size) {
    for (const std::size_t offset : {0u, 1u, 15u, 37u, 63u}) {
      const auto part = std::span<const std::byte>(bytes).subspan(offset, size);
      const auto crc = static_cast<std::uint32_t>(random());
      agree = agree && crc32c_extend(crc, part) == detail::crc32c_extend_by_tables(crc, part);
    }
  }
  CHECK(agree);
}

TEST_CASE("every length has the checksum that the polynomial gives bit by bit, wherever it begins", "[crc32c]") {
  constexpr std::size_t longest = 4096, most_before = 64;
  std::mt19937 random(11);
  std::vector<std::byte> bytes(longest + most_before);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t size = 0; size <= longest; ++size) {
    const std::size_t before = random() % most_before;
    const auto part = std::span<const std::byte>(bytes).subspan(before, size);
    const std::uint32_t crc = random(), expected = crc32c_by_bits(crc, part);
    CAPTURE(size, before, crc);
    REQUIRE(crc32c_extend(crc, part) == expected);
    REQUIRE(detail::crc32c_extend_by_tables(crc, part) == expected);
  }
  for (std::size_t before = 0; before < most_before; ++before) {
    const auto part = std::span<const std::byte>(bytes).subspan(before, 1000);
    CHECK(crc32c(part) == crc32c_by_bits(0, part));
  }
}

TEST_CASE("masking is TFRecord's and is undone", "[crc32c]") {
  // The record "foo" of a TFRecord file: checksum of its length, then of its bytes.
  const std::uint8_t length[8] = {3};
  CHECK(mask_crc32c(crc32c(std::as_bytes(std::span(length)))) == 0x0e4999b0u);
  CHECK(mask_crc32c(crc32c("foo")) == 0xfebe8a61u);
  for (const std::uint32_t value : {0u, 1u, 0xffffffffu, 0xe3069283u}) {
    CHECK(unmask_crc32c(mask_crc32c(value)) == value);
    CHECK(mask_crc32c(value) != value);
  }
}
