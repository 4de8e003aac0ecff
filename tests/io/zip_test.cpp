#include <dflow/io/zip.hpp>

#include "catch.hpp"

#include <dflow/base/files/crc32.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include "support/errors.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using dflow::Code;

namespace {

std::span<const std::byte> zip_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

bool zip_has_zlib() {
  return code_of([] { return dflow::deflated({}, dflow::CompressionFormat::raw); }) != Code::unimplemented;
}

void add_to(dflow::ZipWriter& archive, std::string_view name, std::string_view content) {
  const std::array pieces{zip_bytes(content)};
  archive.add(name, pieces);
}

std::string zip_of(const dflow::ZipOptions& options, std::string_view first, std::string_view second) {
  dflow::MemoryFileSystem files;
  dflow::AtomicFile file(files, "/a.zip");
  dflow::ZipWriter archive(file, options);
  add_to(archive, "first", first);
  add_to(archive, "second", second);
  archive.finish();
  file.finish();
  return files.read_file("/a.zip");
}

std::string zip_deflated(std::string_view content) {
  const std::array pieces{zip_bytes(content)};
  return dflow::deflated(pieces, dflow::CompressionFormat::raw);
}

/// An archive with one entry: `packed` is the deflated `content`, and the entry claims `size` bytes.
std::string zip_of_packed(std::string_view packed, std::string_view content, std::size_t size) {
  std::string archive = zip_of({}, packed, "");
  const auto patch = [&](std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) archive[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i);
  };
  // Method, checksum and size of the entry's own header and of its line in the directory.
  for (const auto& [begin, method] : {std::pair(std::size_t{0}, 8), std::pair(archive.find("PK\1\2"), 10)}) {
    const std::size_t at = begin + static_cast<std::size_t>(method);
    patch(at, 8, 2);
    patch(at + 6, dflow::crc32(content), 4);
    patch(at + 14, static_cast<std::uint32_t>(size), 4);
  }
  return archive;
}

/// The contents of an archive, one after the other.
std::string read_zip(std::string_view bytes) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/a.zip", bytes);
  const dflow::ZipReader archive(files.open_for_reading("/a.zip"));
  std::string all;
  for (const dflow::ZipEntry& entry : archive.entries()) {
    dflow::ZipContent content = archive.open(entry);
    std::string text(static_cast<std::size_t>(entry.size), '\0');
    content.read(std::as_writable_bytes(std::span(text)));
    content.finish();
    all += text;
  }
  return all;
}

std::vector<dflow::ZipOptions> ways_to_zip() {
  std::vector<dflow::ZipOptions> all{{false, false}, {false, true}};
  if (zip_has_zlib()) all.insert(all.end(), {{true, false}, {true, true}});
  return all;
}

}  // namespace

TEST_CASE("what is put into a ZIP archive comes out of it, stored or deflated, with sizes of 32 or 64 bits") {
  const std::string large(300000, 'a');
  for (const dflow::ZipOptions& options : ways_to_zip()) {
    CHECK(read_zip(zip_of(options, "hello", large)) == "hello" + large);
    CHECK(read_zip(zip_of(options, "", "x")) == "x");
  }
}

TEST_CASE("a ZIP archive cut short anywhere is DataLoss") {
  for (const dflow::ZipOptions& options : ways_to_zip()) {
    const std::string archive = zip_of(options, "hello hello hello", "world");
    for (std::size_t length = 0; length < archive.size(); ++length) {
      CHECK(code_of([&] { return read_zip(std::string_view(archive).substr(0, length)); }) == Code::data_loss);
    }
  }
}

TEST_CASE("a flipped bit of a ZIP archive is found, or does not matter") {
  for (const dflow::ZipOptions& options : ways_to_zip()) {
    const std::string archive = zip_of(options, "hello hello hello", "world");
    for (std::size_t bit = 0; bit < 8 * archive.size(); ++bit) {
      std::string damaged = archive;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      std::string content;
      const Code code = code_of([&] { content = read_zip(damaged); });
      CHECK((code == Code::data_loss || code == Code::unimplemented ||
             (code == Code::ok && content == "hello hello helloworld")));
    }
  }
}

TEST_CASE("a reader of a ZIP archive that was moved from says so") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/a.zip", zip_of({false, false}, "hello", "world"));
  dflow::ZipReader archive(files.open_for_reading("/a.zip"));
  const dflow::ZipEntry entry = archive.entries()[0];
  const dflow::ZipReader moved = std::move(archive);
  // NOLINTNEXTLINE(bugprone-use-after-move,hicpp-invalid-access-moved)
  CHECK(code_of([&] { return archive.open(entry).finish(), 0; }) == Code::failed_precondition);
}

TEST_CASE("a ZIP archive may end in a comment") {
  std::string archive = zip_of({}, "hello", " you");
  archive[archive.size() - 2] = 7;
  CHECK(code_of([&] { return read_zip(archive); }) == Code::data_loss);
  CHECK(read_zip(archive + "comment") == "hello you");
}

TEST_CASE("entries of a ZIP archive that overlap, or claim more than they can hold, are DataLoss") {
  std::string archive = zip_of({}, "hello", "world");
  const std::size_t directory = archive.find("PK\1\2"), second = archive.find("PK\1\2", directory + 1);
  SECTION("the same bytes twice") {
    archive[second + 42] = 0;
    CHECK(code_of([&] { return read_zip(archive); }) == Code::data_loss);
  }
  SECTION("sizes of gigabytes") {
    for (const std::size_t at : {directory + 20, directory + 24}) archive[at + 3] = '\x7f';
    CHECK(code_of([&] { return read_zip(archive); }) == Code::data_loss);
  }
  SECTION("a deflated one of gigabytes") {
    archive[directory + 10] = 8;
    archive[directory + 27] = '\x7f';
    CHECK(code_of([&] { return read_zip(archive); }) == Code::data_loss);
  }
  SECTION("the same name twice") {
    archive.replace(second + 46, 6, "first");
    archive[second + 28] = 5;
    CHECK(code_of([&] { return read_zip(archive); }) == Code::data_loss);
  }
}

TEST_CASE("a deflated entry is one stream of just its size, and an error names it") {
  if (!zip_has_zlib()) return;
  const std::string content = "hello hello hello", packed = zip_deflated(content);
  CHECK(read_zip(zip_of_packed(packed, content, content.size())) == content);
  const auto refuses = [&](const std::string& held, std::size_t size, std::string_view what) {
    const dflow::Status status = status_of([&] { return read_zip(zip_of_packed(held, content, size)); });
    CHECK(status.code() == Code::data_loss);
    CHECK(mentions(status, what));
    CHECK(mentions(status, "at offset "));
  };
  refuses(packed, content.size() - 1, "entry 'first' holds more than it should");
  refuses(packed, content.size() + 1, "entry 'first' holds less than it should");
  refuses(packed.substr(0, packed.size() - 1), content.size(), "entry 'first' is cut short");
  refuses(packed + "x", content.size(), "entry 'first' has bytes behind its end");
  refuses(packed + packed, content.size(), "entry 'first' has bytes behind its end");
  refuses(packed + packed, 2 * content.size(), "entry 'first' holds less than it should");
  refuses("\x07 and more", content.size(), "entry 'first' is damaged: invalid block type");
}

TEST_CASE("more than there is in an entry is not read, and the checksum is of all of it") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/a.zip", std::string_view(zip_of({}, "hello", "world")));
  const dflow::ZipReader archive(files.open_for_reading("/a.zip"));
  REQUIRE(archive.find("second") != nullptr);
  CHECK(archive.find("third") == nullptr);
  dflow::ZipContent content = archive.open(*archive.find("second"));
  std::array<std::byte, 6> six{};
  CHECK(code_of([&] { content.read(six); }) == Code::data_loss);
  content.read(std::span(six).first(4));
  CHECK(content.remaining() == 1);
  CHECK(code_of([&] { content.finish(); }) == Code::data_loss);
}

TEST_CASE("what a ZIP archive has no room for is not written") {
  dflow::MemoryFileSystem files;
  {
    dflow::AtomicFile file(files, "/a.zip");
    dflow::ZipWriter archive(file);
    add_to(archive, "a", "1");
    CHECK(code_of([&] { add_to(archive, "a", "2"); }) == Code::invalid_argument);
    CHECK(code_of([&] { add_to(archive, "", "2"); }) == Code::invalid_argument);
    CHECK(code_of([&] { add_to(archive, std::string(65536, 'x'), "2"); }) == Code::invalid_argument);
  }
  CHECK(files.list_directory("/").empty());
}
