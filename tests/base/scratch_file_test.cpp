// Files without a name, on the disk and in memory.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/files/scratch_file.hpp>

#include "catch.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

std::span<const std::byte> scratch_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string scratch_text(const df::ScratchFile& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  file.read_exactly_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

void check_scratch_file(df::FileSystem& files, const std::string& directory) {
  df::ScratchFile file(files, directory);
  CHECK(files.list_directory(directory).empty());
  CHECK(file.size() == 0);
  CHECK(file.append(scratch_bytes("one")) == 0);
  CHECK(file.append(scratch_bytes("")) == 3);
  CHECK(file.append(scratch_bytes("three")) == 3);
  CHECK(file.size() == 8);
  CHECK(scratch_text(file, 3, 5) == "three");
  CHECK(scratch_text(file, 0, 3) == "one");
  df::ScratchFile other(files, directory);
  CHECK(other.append(scratch_bytes("four")) == 0);
  CHECK(scratch_text(file, 0, 8) == "onethree");
  try {
    static_cast<void>(scratch_text(file, 4, 5));
    FAIL("read past the end");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::data_loss);
  }
}

}  // namespace

TEST_CASE("a scratch file has no name and keeps what is appended") {
  const df::testing::TemporaryFolder folder;
  df::PosixFileSystem disk;
  check_scratch_file(disk, folder.file("made/on the way"));
  df::MemoryFileSystem memory;
  check_scratch_file(memory, "/scratch");
}

TEST_CASE("a scratch file whose append has failed says so again, and keeps what was there") {
  df::MemoryFileSystem files;
  df::ScratchFile file(files, "/tmp");
  CHECK(file.append(scratch_bytes("before")) == 0);
  files.fail_change(1, df::Status::resource_exhausted("the disk is full"));
  for (int i = 0; i < 3; ++i) {
    try {
      file.append(scratch_bytes("after"));
      FAIL("appended");
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::resource_exhausted);
    }
  }
  CHECK(file.size() == 6);
  CHECK(scratch_text(file, 0, 6) == "before");
}

TEST_CASE("a scratch file that cannot be made leaves nothing") {
  df::PosixFileSystem disk;
  const df::testing::TemporaryFolder folder;
  disk.write_file_atomically(folder.file("a file"), std::string_view("x"));
  CHECK_THROWS_AS(df::ScratchFile(disk, folder.file("a file")), df::Error);
}
