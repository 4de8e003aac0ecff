#include <dflow/net/protocol/frame.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

FrameHeader header_of(FrameType type, std::string_view payload) {
  FrameHeader header{.type = type, .flags = 0x0201, .request = 0x1122334455667788};
  const std::array parts{bytes_of(payload)};
  describe_payload(header, parts);
  return header;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const int digit : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15}) {
      text += "0123456789abcdef"[digit];
    }
  }
  return text;
}

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

}  // namespace

TEST_CASE("the header of a frame is the bytes of its table", "[net]") {
  const FrameHeader header = header_of(FrameType::chunk, "hello, world");
  // Made by Python's struct and a CRC-32C written from its polynomial.
  CHECK(hex(to_bytes(header)) == "64666c77010601020c0000000000000088776655443322111fa4996947f99606");
  CHECK(read_frame_header(to_bytes(header), no_limit) == header);
  CHECK(header.length == 12);
}

TEST_CASE("a payload may come in parts", "[net]") {
  const FrameHeader header = header_of(FrameType::reply, "hello, world");
  const std::array parts{bytes_of("hello"), bytes_of(""), bytes_of(", world")};
  CHECK_NOTHROW(check_payload(header, parts));
  const std::array other{bytes_of("hello"), bytes_of(", World")};
  CHECK(code_of([&] {
          check_payload(header, other);
          return 0;
        }) == Code::data_loss);
  const std::array shorter{bytes_of("hello")};
  CHECK(code_of([&] {
          check_payload(header, shorter);
          return 0;
        }) == Code::data_loss);
  FrameHeader empty{.type = FrameType::ping};
  describe_payload(empty, {});
  CHECK(empty.length == 0);
  CHECK_NOTHROW(check_payload(empty, {}));
}

TEST_CASE("each flipped bit of a header is found", "[net]") {
  const FrameHeaderBytes sound = to_bytes(header_of(FrameType::request, "abc"));
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    FrameHeaderBytes bytes = sound;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const Code code = code_of([&] { return read_frame_header(bytes, no_limit); });
    INFO("bit " << bit);
    CHECK(code == (bit < 32 ? Code::invalid_argument : bit < 40 ? Code::failed_precondition : Code::data_loss));
  }
}

TEST_CASE("headers of another kind, version, type or length are refused in words", "[net]") {
  FrameHeader header = header_of(FrameType::request, "");
  header.length = std::uint64_t{1} << 63;
  CHECK(contains(error_of([&] { return read_frame_header(to_bytes(header), 1 << 20); }, Code::out_of_range),
                 "a frame of 9223372036854775808 bytes, more than 1048576"));
  header.length = 1 << 20;
  CHECK(read_frame_header(to_bytes(header), 1 << 20) == header);
  header.length = 0;
  for (const int type : {0, 11, 255}) {
    header.type = static_cast<FrameType>(type);
    CHECK(contains(error_of([&] { return read_frame_header(to_bytes(header), 0); }, Code::unimplemented),
                   "unknown type " + std::to_string(type)));
  }
  const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  CHECK(contains(error_of([&] { return read_frame_header(bytes_of(http).first<FrameHeader::size>(), no_limit); }),
                 "no frame of dflow"));
}
