#include <dflow/io/compression/compressed_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/io/compression/gzip.hpp>

#include <random>
#include <span>
#include <string>

using namespace dflow;

namespace {

std::string packed_by_file(MemoryFileSystem& files, const std::string& content, CompressionFormat format,
                           int level = -1) {
  if (files.exists("/packed")) files.remove("/packed");
  DeflatingFile file(files.open_for_appending("/packed"), format, level);
  file.append(content);
  file.finish();
  return files.read_file("/packed");
}

std::string unpacked_by_source(MemoryFileSystem& files, CompressionFormat format, std::size_t step) {
  const auto source = inflating_source(std::make_unique<FileSource>(files.open_for_reading("/packed")), format);
  std::string content;
  std::string part(step, '\0');
  while (true) {
    const std::size_t got = source->read(std::as_writable_bytes(std::span(part)));
    content.append(part, 0, got);
    if (got < step) return content;
  }
}

bool has_compressed_files() {
  MemoryFileSystem files;
  return code_of([&] { return packed_by_file(files, "", CompressionFormat::gzip); }) != Code::unimplemented;
}

}  // namespace

TEST_CASE("what is deflated is inflated, whatever the sizes of reads", "[compressed_file]") {
  if (!has_compressed_files()) return;
  std::mt19937 random(1);
  std::string content(200'000, '\0');
  for (char& byte : content) byte = static_cast<char>('a' + random() % 4);
  MemoryFileSystem files;
  for (const CompressionFormat format : {CompressionFormat::gzip, CompressionFormat::zlib}) {
    const std::string packed = packed_by_file(files, content, format);
    CHECK(packed.size() < content.size() / 2);
    if (format == CompressionFormat::gzip) CHECK(gunzip(packed) == content);
    for (const std::size_t step : {7u, 4096u, 300'000u}) CHECK(unpacked_by_source(files, format, step) == content);
    CHECK(packed_by_file(files, content, format, 0).size() > content.size());
    CHECK(unpacked_by_source(files, format, 1000) == content);
  }
}

TEST_CASE("nothing deflated is nothing inflated", "[compressed_file]") {
  if (!has_compressed_files()) return;
  MemoryFileSystem files;
  static_cast<void>(packed_by_file(files, "", CompressionFormat::zlib));
  CHECK(unpacked_by_source(files, CompressionFormat::zlib, 10).empty());
}

TEST_CASE("a source that has failed fails until its position is set", "[compressed_file]") {
  if (!has_compressed_files()) return;
  MemoryFileSystem files;
  const std::string packed = packed_by_file(files, std::string(100, 'x'), CompressionFormat::gzip);
  files.write_file_atomically("/packed", packed.substr(0, packed.size() - 1));
  const auto source =
      inflating_source(std::make_unique<FileSource>(files.open_for_reading("/packed")), CompressionFormat::gzip);
  std::string part(200, '\0');
  const auto read = [&] { return source->read(std::as_writable_bytes(std::span(part))); };
  CHECK(code_of(read) == Code::data_loss);
  CHECK(code_of(read) == Code::data_loss);
  source->seek(0);
  part.resize(50);
  CHECK(read() == 50);
  CHECK(part == std::string(50, 'x'));
}

TEST_CASE("bytes behind a zlib stream are DataLoss that names their offset", "[compressed_file]") {
  if (!has_compressed_files()) return;
  MemoryFileSystem files;
  const std::string packed = packed_by_file(files, "content", CompressionFormat::zlib);
  files.write_file_atomically("/packed", packed + "x");
  const Status status = status_of([&] { return unpacked_by_source(files, CompressionFormat::zlib, 100); });
  CHECK(status.code() == Code::data_loss);
  CHECK(status.message().find(str_cat("zlib stream is damaged before offset ", packed.size())) != std::string::npos);
}

TEST_CASE("a file that was finished takes nothing more", "[compressed_file]") {
  if (!has_compressed_files()) return;
  MemoryFileSystem files;
  DeflatingFile file(files.open_for_appending("/packed"), CompressionFormat::gzip);
  file.append("content");
  file.flush();
  CHECK(!files.read_file("/packed").empty());
  file.finish();
  const std::string packed = files.read_file("/packed");
  file.finish();
  file.flush();
  CHECK(code_of([&] { file.append("more"); }) == Code::failed_precondition);
  CHECK(files.read_file("/packed") == packed);
  CHECK(gunzip(packed) == "content");
}
