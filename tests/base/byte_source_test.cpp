#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/memory_file_system.hpp>

#include "catch.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

using namespace dflow;

namespace {

std::string next_bytes(ByteSource& source, std::size_t size) {
  std::string bytes(size, '?');
  bytes.resize(source.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::string random_file(std::size_t size) {
  std::mt19937 random(7);
  std::string content(size, '\0');
  for (char& byte : content) byte = static_cast<char>(random());
  return content;
}

}  // namespace

TEST_CASE("a file is read in order, whatever the sizes of reads and buffer", "[byte_source]") {
  MemoryFileSystem files;
  files.write_file_atomically("/file", std::string_view("0123456789"));
  for (std::size_t buffer = 0; buffer < 12; ++buffer) {
    FileSource source(files.open_for_reading("/file"), buffer);
    CHECK(next_bytes(source, 3) == "012");
    CHECK(source.position() == 3);
    CHECK(next_bytes(source, 1) == "3");
    CHECK(next_bytes(source, 0).empty());
    CHECK(next_bytes(source, 100) == "456789");
    CHECK(source.position() == 10);
    CHECK(next_bytes(source, 1).empty());
    CHECK(next_bytes(source, 1).empty());
  }
}

TEST_CASE("a position can be set, also past the end", "[byte_source]") {
  MemoryFileSystem files;
  const std::string content = random_file(1000);
  std::mt19937 random(7);
  files.write_file_atomically("/file", content);
  FileSource source(files.open_for_reading("/file"), 64);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t at = random() % 1100, size = random() % 100;
    source.seek(at);
    CHECK(source.position() == at);
    CHECK(next_bytes(source, size) == (at < content.size() ? content.substr(at, size) : ""));
    CHECK(source.position() == std::min(at + size, std::max(content.size(), at)));
  }
}

TEST_CASE("what is appended to a file after its end was seen is read", "[byte_source]") {
  MemoryFileSystem files;
  const auto writer = files.open_for_appending("/file");
  writer->append("one");
  FileSource source(files.open_for_reading("/file"), 4);
  CHECK(next_bytes(source, 5) == "one");
  writer->append("two");
  CHECK(next_bytes(source, 2) == "tw");
  source.seek(2);
  CHECK(next_bytes(source, 9) == "etwo");
}

TEST_CASE("what is brought to hand is what comes next, as much as a buffer holds", "[byte_source]") {
  MemoryFileSystem files;
  const std::string content = random_file(1000);
  std::mt19937 random(9);
  files.write_file_atomically("/file", content);
  FileSource source(files.open_for_reading("/file"), 64);
  for (std::uint64_t position = 0; position <= content.size(); position += 1 + random() % 40) {
    source.seek(position);
    for (const std::size_t size : {1u, 30u, 64u, 65u}) {
      const std::span<const std::byte> held = source.bring_to_hand(size);
      CHECK(source.position() == position);
      if (size <= 64) CHECK(held.size() >= std::min<std::size_t>(size, content.size() - position));
      CHECK(held.size() <= 64);
      CHECK(std::equal(held.begin(), held.end(),
                       std::as_bytes(std::span(content)).begin() + static_cast<std::ptrdiff_t>(position)));
    }
    CHECK(next_bytes(source, 70) == content.substr(position, 70));
  }
}

TEST_CASE("memory for a part of a file begins where its offset is, within 64 bytes", "[byte_source]") {
  for (const std::size_t size : {1u, 100u, 4'096u, 300'000u}) {
    const FileBuffer buffer(size);
    CHECK(buffer.size() == size);
    for (const std::uint64_t offset : {0u, 1u, 63u, 64u, 12'345u}) {
      std::byte* const at = buffer.at(offset);
      CHECK((reinterpret_cast<std::uintptr_t>(at) - offset) % 64 == 0);
      CHECK(FileBuffer::suits(at, offset));
      CHECK_FALSE(FileBuffer::suits(at, offset + reinterpret_cast<std::uintptr_t>(at) - offset - 16));
      std::fill_n(at, size, std::byte{1});
    }
  }
}
