#include <dflow/io/proto/proto_writer.hpp>

#include "catch.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

using namespace dflow;
using namespace std::string_view_literals;

TEST_CASE("what is written are the bytes that protocol buffers' own library writes", "[proto]") {
  std::string bytes;
  ProtoWriter out(bytes);
  out.uint64(1, std::numeric_limits<std::uint64_t>::max());
  out.int64(2, -2);
  out.sint64(3, -3);
  out.boolean(4, true);
  out.fixed32(5, 0xdeadbeef);
  out.fixed64(6, 0x0123456789abcdef);
  out.float32(7, 1.5f);
  out.float64(8, -0.25);
  out.bytes(9, "a\0b"sv);
  constexpr std::array<std::int64_t, 3> integers = {0, -1, 300};
  constexpr std::array<float, 2> floats = {0.5f, -2.0f};
  out.packed(10, std::span<const std::int64_t>(integers));
  out.int64(11, 7);
  out.int64(11, -8);
  out.packed(12, std::span<const float>(floats));
  out.message(1000, [](ProtoWriter& inner) {
    inner.bytes(9, "in");
    inner.message(1000, [](ProtoWriter& innermost) { innermost.uint64(1, 1); });
  });
  // By Python's google.protobuf 7.36: SerializeToString of a message with the same fields.
  CHECK(bytes ==
        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x18\x05\x20\x01"
        "\x2d\xef\xbe\xad\xde\x31\xef\xcd\xab\x89\x67\x45\x23\x01\x3d\x00\x00\xc0\x3f\x41\x00\x00\x00\x00\x00\x00"
        "\xd0\xbf\x4a\x03\x61\x00\x62\x52\x0d\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02\x58\x07\x58\xf8"
        "\xff\xff\xff\xff\xff\xff\xff\xff\x01\x62\x08\x00\x00\x00\x3f\x00\x00\x00\xc0\xc2\x3e\x09\x4a\x02\x69\x6e"
        "\xc2\x3e\x02\x08\x01"sv);
}

TEST_CASE("a nested message's length takes the bytes that it needs", "[proto]") {
  const std::string text(300, 'x');
  std::string bytes = "before";
  ProtoWriter(bytes).message(1, [&](ProtoWriter& inner) { inner.bytes(2, text); });
  CHECK(bytes == std::string("before\x0a\xaf\x02\x12\xac\x02") + text);
}

TEST_CASE("packed fields of each element type have their lengths", "[proto]") {
  constexpr std::array<std::int32_t, 2> integers = {-1, 1};
  constexpr std::array<double, 1> doubles = {1.0};
  std::string bytes;
  ProtoWriter out(bytes);
  out.packed(1, std::span<const std::int32_t>(integers));
  out.packed(2, std::span<const double>(doubles));
  out.packed(3, std::span<const std::int64_t>());
  CHECK(bytes ==
        "\x0a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x12\x08\x00\x00\x00\x00\x00\x00\xf0\x3f\x1a\x00"sv);
}
