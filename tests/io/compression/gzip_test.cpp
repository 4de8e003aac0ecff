#include <dflow/io/compression/gzip.hpp>

#include "catch.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <string>
#include <string_view>

using namespace std::string_view_literals;

namespace {

// printf 'hello hello hello\n' | gzip -9n
constexpr std::string_view packed =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x90\x5c\x00\x3b\x7c\x8a\xdf\x12\x00\x00\x00"sv;
constexpr std::string_view text = "hello hello hello\n";

dflow::Code code_of_gzip(std::string_view bytes, std::uint64_t max_bytes = 1 << 20) {
  try {
    static_cast<void>(dflow::gunzip(bytes, max_bytes));
  } catch (const dflow::Error& error) {
    return error.code();
  }
  return dflow::Code::ok;
}

}  // namespace

TEST_CASE("A gzip file is known by its first bytes") {
  CHECK(dflow::is_gzip(packed));
  CHECK_FALSE(dflow::is_gzip("\x1f"sv));
  CHECK_FALSE(dflow::is_gzip("text"sv));
}

TEST_CASE("A library without zlib says so, one with it unpacks", "[gzip]") {
  if (code_of_gzip(packed) == dflow::Code::unimplemented) return;
  CHECK(dflow::gunzip(packed) == text);
  CHECK(dflow::gunzip(std::string(packed) + std::string(packed)) == std::string(text) + std::string(text));

  SECTION("content far larger than the file is whole, and bounded") {
    // head -c 20000 /dev/zero | tr '\0' a | gzip -9n
    constexpr std::string_view many =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xac\xeb\x5f\xc2\x1a\x1e"
        "\x40\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x60\x31\x87\xbd"
        "\xca\x20\x4e\x00\x00"sv;
    CHECK(dflow::gunzip(many) == std::string(20000, 'a'));
    CHECK(code_of_gzip(many, 19999) == dflow::Code::resource_exhausted);
    CHECK(code_of_gzip(many, 20000) == dflow::Code::ok);
  }
  SECTION("cut short at any byte it is DataLoss") {
    for (std::size_t length = 0; length < packed.size(); ++length) {
      CHECK(code_of_gzip(packed.substr(0, length)) == dflow::Code::data_loss);
    }
  }
  SECTION("a flipped checksum is DataLoss") {
    std::string damaged(packed);
    damaged[packed.size() - 6] ^= 1;
    CHECK(code_of_gzip(damaged) == dflow::Code::data_loss);
  }
  SECTION("trailing garbage is DataLoss") {
    CHECK(code_of_gzip(std::string(packed) + "garbage") == dflow::Code::data_loss);
  }
  SECTION("content over the limit is ResourceExhausted") {
    CHECK(code_of_gzip(packed, text.size() - 1) == dflow::Code::resource_exhausted);
    CHECK(code_of_gzip(packed, text.size()) == dflow::Code::ok);
  }
  SECTION("a file is unpacked only if it is compressed") {
    dflow::MemoryFileSystem files;
    files.write_file_atomically("/a", packed);
    files.write_file_atomically("/b", text);
    CHECK(dflow::read_maybe_gzip(files, "/a") == text);
    CHECK(dflow::read_maybe_gzip(files, "/b") == text);
  }
}
