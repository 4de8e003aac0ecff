#include <dflow/io/summary/png.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/io/compression/compressed_file.hpp>

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

Code code_of_png(std::size_t pixels, std::int64_t height, std::int64_t width, std::int64_t channels) {
  const std::vector<std::uint8_t> values(pixels);
  return code_of([&] { return encode_png(values, height, width, channels); });
}

/// The content of the chunk IDAT, in an image with a header and an end of fixed sizes.
std::string_view content_of(std::string_view png) { return png.substr(41, png.size() - 41 - 16); }

}  // namespace

TEST_CASE("a PNG file has its signature, header, content and end", "[png]") {
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 4, 5, 6};
  const std::string png = encode_png(pixels, 1, 2, 3);
  CHECK(png.starts_with("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01\x08\x02\0\0\0"sv));
  CHECK(png.substr(37, 4) == "IDAT");
  CHECK(png.ends_with("\0\0\0\0IEND\xae\x42\x60\x82"sv));  // the one end that all PNG files have
  CHECK(encode_png(pixels, 2, 3, 1)[25] == 0);
  CHECK(encode_png(pixels, 1, 3, 2)[25] == 4);
  CHECK(encode_png(std::vector<std::uint8_t>(4), 1, 1, 4)[25] == 6);
}

TEST_CASE("the content of a PNG file are its rows without filters", "[png]") {
  std::vector<std::uint8_t> pixels(300 * 400);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  const std::string png = encode_png(pixels, 300, 400, 1);
  MemoryFileSystem files;
  files.write_file_atomically("/idat", content_of(png));
  std::string rows(300 * 401 + 1, '?');
  try {
    const auto source =
        inflating_source(std::make_unique<FileSource>(files.open_for_reading("/idat")), CompressionFormat::zlib);
    rows.resize(source->read(std::as_writable_bytes(std::span(rows))));
  } catch (const Error& error) {
    REQUIRE(error.code() == Code::unimplemented);
    return;
  }
  REQUIRE(rows.size() == 300 * 401);
  for (std::size_t row = 0; row < 300; ++row) {
    CHECK(rows[401 * row] == 0);
    CHECK(std::equal(rows.begin() + static_cast<std::ptrdiff_t>(401 * row + 1),
                     rows.begin() + static_cast<std::ptrdiff_t>(401 * (row + 1)),
                     pixels.begin() + static_cast<std::ptrdiff_t>(400 * row),
                     [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }));
  }
}

TEST_CASE("what is stored without compression is a zlib stream", "[png]") {
  // Python's zlib.compress(b"a" * 3, 0), except for the header's check of the level.
  CHECK(detail::stored_in_zlib("aaa") == "\x78\x01\x01\x03\x00\xfc\xff\x61\x61\x61\x02\x49\x01\x24"sv);
  for (const std::size_t size : {0u, 1u, 65534u, 65535u, 65536u, 200'000u}) {
    std::string content(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) content[i] = static_cast<char>(i);
    MemoryFileSystem files;
    files.write_file_atomically("/stored", detail::stored_in_zlib(content));
    std::string read(size + 1, '?');
    try {
      const auto source =
          inflating_source(std::make_unique<FileSource>(files.open_for_reading("/stored")), CompressionFormat::zlib);
      read.resize(source->read(std::as_writable_bytes(std::span(read))));
    } catch (const Error& error) {
      REQUIRE(error.code() == Code::unimplemented);
      return;
    }
    CHECK((read == content));
  }
}

TEST_CASE("an image that a PNG file cannot be is InvalidArgument", "[png]") {
  CHECK(code_of_png(6, 1, 2, 3) == Code::ok);
  CHECK(code_of_png(5, 1, 2, 3) == Code::invalid_argument);
  CHECK(code_of_png(10, 1, 2, 5) == Code::invalid_argument);
  CHECK(code_of_png(0, 1, 2, 0) == Code::invalid_argument);
  CHECK(code_of_png(0, 0, 2, 1) == Code::invalid_argument);
  CHECK(code_of_png(0, 2, 0, 1) == Code::invalid_argument);
  CHECK(code_of_png(0, std::int64_t{1} << 31, 1, 1) == Code::invalid_argument);
  CHECK(code_of_png(0, 0x7fffffff, 0x7fffffff, 4) == Code::invalid_argument);
}
