#include <dflow/io/compression/zlib_stream.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/io/compression/gzip.hpp>

#include <random>
#include <span>
#include <string>

using namespace dflow;

namespace {

std::string deflated(MemoryFileSystem& files, const std::string& content, ZlibFormat format, int level = -1) {
  if (files.exists("/packed")) files.remove("/packed");
  DeflatingFile file(files.open_for_appending("/packed"), format, level);
  file.append(content);
  file.finish();
  return files.read_file("/packed");
}

std::string inflated(MemoryFileSystem& files, ZlibFormat format, std::size_t step) {
  const auto source = inflating_source(std::make_unique<FileSource>(files.open_for_reading("/packed")), format);
  std::string content;
  std::string part(step, '\0');
  while (true) {
    const std::size_t got = source->read(std::as_writable_bytes(std::span(part)));
    content.append(part, 0, got);
    if (got < step) return content;
  }
}

bool has_zlib_streams() {
  MemoryFileSystem files;
  return code_of([&] { return deflated(files, "", ZlibFormat::gzip); }) != Code::unimplemented;
}

}  // namespace

TEST_CASE("what is deflated is inflated, whatever the sizes of reads", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  std::mt19937 random(1);
  std::string content(200'000, '\0');
  for (char& byte : content) byte = static_cast<char>('a' + random() % 4);
  MemoryFileSystem files;
  for (const ZlibFormat format : {ZlibFormat::gzip, ZlibFormat::zlib}) {
    const std::string packed = deflated(files, content, format);
    CHECK(packed.size() < content.size() / 2);
    if (format == ZlibFormat::gzip) CHECK(gunzip(packed) == content);
    for (const std::size_t step : {7u, 4096u, 300'000u}) CHECK(inflated(files, format, step) == content);
    CHECK(deflated(files, content, format, 0).size() > content.size());
    CHECK(inflated(files, format, 1000) == content);
  }
}

TEST_CASE("nothing deflated is nothing inflated", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  MemoryFileSystem files;
  static_cast<void>(deflated(files, "", ZlibFormat::zlib));
  CHECK(inflated(files, ZlibFormat::zlib, 10).empty());
}

TEST_CASE("a source that has failed fails until its position is set", "[zlib_stream]") {
  if (!has_zlib_streams()) return;
  MemoryFileSystem files;
  const std::string packed = deflated(files, std::string(100, 'x'), ZlibFormat::gzip);
  files.write_file_atomically("/packed", packed.substr(0, packed.size() - 1));
  const auto source =
      inflating_source(std::make_unique<FileSource>(files.open_for_reading("/packed")), ZlibFormat::gzip);
  std::string part(200, '\0');
  const auto read = [&] { return source->read(std::as_writable_bytes(std::span(part))); };
  CHECK(code_of(read) == Code::data_loss);
  CHECK(code_of(read) == Code::data_loss);
  source->seek(0);
  part.resize(50);
  CHECK(read() == 50);
  CHECK(part == std::string(50, 'x'));
}
