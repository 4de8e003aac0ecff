// A file that another thread reads ahead of its reader.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/files/read_ahead_source.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>

using namespace dflow;

namespace {

std::string random_content(std::size_t size) {
  std::mt19937 random(7);
  std::string content(size, '\0');
  for (char& byte : content) byte = static_cast<char>(random());
  return content;
}

std::string read_ahead(ByteSource& source, std::size_t size) {
  std::string bytes(size, '?');
  bytes.resize(source.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

/// A file that counts the bytes read of it. Its reads beyond the offset `fails_from` fail.
class WatchedFile final : public RandomAccessFile {
 public:
  struct Watch {
    std::atomic<std::uint64_t> bytes_read = 0;
    std::atomic<std::uint64_t> fails_from = ~std::uint64_t{0};
  };
  WatchedFile(std::unique_ptr<RandomAccessFile> file, Watch& watch) : file_(std::move(file)), watch_(watch) {}
  std::uint64_t size() const override { return file_->size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset + into.size() > watch_.fails_from) throw_error(Status::unavailable("the disk has gone"));
    const std::size_t got = file_->read_at(offset, into);
    watch_.bytes_read += got;
    return got;
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  Watch& watch_;
};

}  // namespace

TEST_CASE("a file that is read ahead is read in order, whatever the sizes of reads and blocks", "[byte_source]") {
  MemoryFileSystem files;
  const std::string content = random_content(1000);
  files.write_file_atomically("/file", content);
  for (const std::size_t block : {0u, 1u, 7u, 64u, 250u, 999u, 1000u, 1001u, 5000u}) {
    for (const std::size_t step : {1u, 3u, 64u, 500u, 2000u}) {
      ReadAheadSource source(files.open_for_reading("/file"), block);
      std::string all;
      for (std::string part; !(part = read_ahead(source, step)).empty();) {
        all += part;
        CHECK(source.position() == all.size());
      }
      CHECK(all == content);
      CHECK(read_ahead(source, step).empty());
    }
  }
}

TEST_CASE("a file that is read ahead is read from any position that is set", "[byte_source]") {
  MemoryFileSystem files;
  const std::string content = random_content(10'000);
  files.write_file_atomically("/file", content);
  ReadAheadSource source(files.open_for_reading("/file"), 128);
  std::mt19937 random(3);
  std::uint64_t position = 0;
  for (int i = 0; i < 3000; ++i) {
    // Near the last position, where blocks are at hand, and anywhere.
    position = i % 3 == 0 ? random() % 10'200 : position + random() % 300;
    source.seek(position);
    CHECK(source.position() == position);
    const std::size_t size = random() % 400;
    const std::string expected = position < content.size() ? content.substr(position, size) : "";
    CHECK(read_ahead(source, size) == expected);
    position += expected.size();
    const std::span<const std::byte> held = source.bring_to_hand(1);
    CHECK(held.empty() == (position >= content.size()));
    if (!held.empty()) CHECK(std::to_integer<char>(held[0]) == content[position]);
  }
}

TEST_CASE("what is added to a file that was read ahead to its end is found later", "[byte_source]") {
  MemoryFileSystem files;
  files.open_for_appending("/file")->append(std::string_view("abc"));
  for (const std::size_t block : {1u, 2u, 3u, 100u}) {
    ReadAheadSource source(files.open_for_reading("/file"), block);
    const std::uint64_t before = files.file_size("/file");
    CHECK(read_ahead(source, 1000).size() == before);
    CHECK(read_ahead(source, 1000).empty());
    files.open_for_appending("/file")->append(std::string_view("defg"));
    CHECK(read_ahead(source, 1000) == "defg");
    CHECK(read_ahead(source, 1000).empty());
  }
}

TEST_CASE("an error of reading ahead comes when its bytes are asked for, and asking again tries again",
          "[byte_source]") {
  MemoryFileSystem files;
  const std::string content = random_content(100);
  files.write_file_atomically("/file", content);
  WatchedFile::Watch watch;
  ReadAheadSource source(std::make_unique<WatchedFile>(files.open_for_reading("/file"), watch), 10);
  watch.fails_from = 35;
  CHECK(read_ahead(source, 30) == content.substr(0, 30));
  for (int i = 0; i < 3; ++i) {
    try {
      read_ahead(source, 10);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.status().code() == Code::unavailable);
    }
    CHECK(source.position() == 30);
  }
  watch.fails_from = 1000;
  CHECK(read_ahead(source, 100) == content.substr(30));
}

TEST_CASE("no more is read ahead than the blocks hold, and a source goes while it reads", "[byte_source]") {
  MemoryFileSystem files;
  files.write_file_atomically("/file", random_content(100'000));
  WatchedFile::Watch watch;
  {
    ReadAheadSource source(std::make_unique<WatchedFile>(files.open_for_reading("/file"), watch), 100);
    CHECK(read_ahead(source, 1).size() == 1);
    CHECK(read_ahead(source, 250).size() == 250);
  }
  // Three blocks were begun.
  CHECK(watch.bytes_read <= 100 * (3 + ReadAheadSource::num_blocks + 1));
  for (int i = 0; i < 200; ++i) {
    ReadAheadSource source(files.open_for_reading("/file"), 100);
    if (i % 2 == 0) static_cast<void>(read_ahead(source, static_cast<std::size_t>(i)));
    if (i % 3 == 0) source.seek(50'000);
  }
}
