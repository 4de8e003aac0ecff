#include <dflow/io/compression/zlib_stream.hpp>

#include "catch.hpp"

#include <dflow/base/status.hpp>

#include "support/errors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

using dflow::Code;
using dflow::CompressionFormat;
using dflow::Deflater;
using dflow::Inflater;

namespace {

constexpr std::array all_formats{CompressionFormat::raw, CompressionFormat::zlib, CompressionFormat::gzip};

std::span<const std::byte> stream_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string packed_at_once(std::string_view text, CompressionFormat format) {
  const std::array pieces{stream_bytes(text.substr(0, 5)), stream_bytes(text.substr(5))};
  return dflow::deflated(pieces, format);
}

struct UnpackedStream {
  std::string content;
  std::size_t taken = 0;
  bool is_end = false;
  std::string damage;
};

/// Unpacks until the stream ends, is damaged, or needs more: at most `step` packed bytes and `room` others at a time.
UnpackedStream unpack_stream(Inflater& inflater, std::string_view packed, std::size_t step, std::size_t room) {
  UnpackedStream result;
  std::string part(room, '\0');
  while (true) {
    const Inflater::Step done =
        inflater.step(stream_bytes(packed.substr(result.taken, step)), std::as_writable_bytes(std::span(part)));
    result.taken += done.taken;
    result.content.append(part, 0, done.made);
    result.is_end = done.is_end;
    result.damage = done.damage;
    if (done.is_end || done.is_stuck() || !done.damage.empty()) return result;
  }
}

UnpackedStream unpack_stream(CompressionFormat format, std::string_view packed, std::size_t step = 100,
                             std::size_t room = 1000) {
  Inflater inflater(format);
  return unpack_stream(inflater, packed, step, room);
}

bool has_zlib_streams() {
  return code_of([] { return Inflater(CompressionFormat::raw); }) != Code::unimplemented;
}

}  // namespace

TEST_CASE("a library without zlib says so of packing and of unpacking", "[zlib_stream]") {
  if (has_zlib_streams()) return;
  for (const CompressionFormat format : all_formats) {
    CHECK(code_of([&] { return Inflater(format); }) == Code::unimplemented);
    CHECK(code_of([&] { return Deflater(format); }) == Code::unimplemented);
    CHECK(code_of([&] { return dflow::deflated({}, format); }) == Code::unimplemented);
  }
}

TEST_CASE("what is packed comes out again, whatever the sizes of the pieces", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  const std::string text = "hello hello hello" + std::string(200'000, 'x');
  for (const CompressionFormat format : all_formats) {
    const std::string packed = packed_at_once(text, format);
    CHECK(packed.size() < 1000);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, packed.size()}) {
      for (const std::size_t room : {std::size_t{33}, std::size_t{4096}, text.size() + 1}) {
        const UnpackedStream result = unpack_stream(format, packed, step, room);
        CHECK(result.content == text);
        CHECK(result.is_end);
        CHECK(result.taken == packed.size());
      }
    }
  }
}

TEST_CASE("a stream ends where it ends: what follows is not taken", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const CompressionFormat format : all_formats) {
    const std::string packed = packed_at_once("some content", format);
    const UnpackedStream result = unpack_stream(format, packed + packed);
    CHECK(result.is_end);
    CHECK(result.taken == packed.size());
    CHECK(result.content == "some content");
  }
}

TEST_CASE("an inflater that is reset begins another stream", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const CompressionFormat format : all_formats) {
    const std::string packed = packed_at_once("some content", format);
    Inflater inflater(format);
    CHECK(unpack_stream(inflater, packed.substr(0, packed.size() / 2), 3, 10).is_end == false);
    for (int round = 0; round < 2; ++round) {
      inflater.reset();
      CHECK(unpack_stream(inflater, packed, 3, 10).content == "some content");
    }
  }
}

TEST_CASE("a stream that is cut short is stuck, and not damaged", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const CompressionFormat format : all_formats) {
    const std::string packed = packed_at_once("some content", format);
    for (std::size_t length = 0; length < packed.size(); ++length) {
      const UnpackedStream result = unpack_stream(format, packed.substr(0, length));
      CHECK(!result.is_end);
      CHECK(result.damage.empty());
      CHECK(result.taken == length);
    }
  }
}

TEST_CASE("damage is told in zlib's words, and stays", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  CHECK(unpack_stream(CompressionFormat::raw, "\x07").damage == "invalid block type");
  CHECK(unpack_stream(CompressionFormat::zlib, "text").damage == "incorrect header check");
  CHECK(unpack_stream(CompressionFormat::gzip, "text").damage == "incorrect header check");
  for (const CompressionFormat format : {CompressionFormat::zlib, CompressionFormat::gzip}) {
    std::string packed = packed_at_once("some content", format);
    packed[packed.size() - (format == CompressionFormat::gzip ? 5 : 1)] ^= 1;
    Inflater inflater(format);
    CHECK(unpack_stream(inflater, packed, 100, 100).damage == "incorrect data check");
    const UnpackedStream again = unpack_stream(inflater, packed, 100, 100);
    CHECK(again.damage == "incorrect data check");
    CHECK(again.taken == 0);
  }
}

TEST_CASE("no format passes for another", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const CompressionFormat packed_as : all_formats) {
    const std::string packed = packed_at_once("some content", packed_as);
    for (const CompressionFormat read_as : all_formats) {
      if (read_as != packed_as) CHECK(!unpack_stream(read_as, packed).is_end);
    }
  }
}

TEST_CASE("what was put in can be unpacked after a flush, and nothing more goes in after the end", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const CompressionFormat format : all_formats) {
    std::string packed;
    const auto append = [&](std::span<const std::byte> bytes) {
      packed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    Deflater deflater(format);
    deflater.run(stream_bytes("first"), Deflater::Flush::none, append);
    deflater.run({}, Deflater::Flush::sync, append);
    CHECK(unpack_stream(format, packed).content == "first");
    CHECK(!unpack_stream(format, packed).is_end);
    deflater.run(stream_bytes(", second"), Deflater::Flush::finish, append);
    CHECK(unpack_stream(format, packed).content == "first, second");
    CHECK(unpack_stream(format, packed).is_end);
    const std::size_t size = packed.size();
    deflater.run({}, Deflater::Flush::finish, append);
    CHECK(packed.size() == size);
    CHECK(code_of([&] { deflater.run(stream_bytes("third"), Deflater::Flush::none, append); }) ==
          Code::failed_precondition);
  }
}

TEST_CASE("a level that zlib does not have is InvalidArgument", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  for (const int level : {-2, 10}) {
    CHECK(code_of([&] { return Deflater(CompressionFormat::gzip, level); }) == Code::invalid_argument);
  }
}
