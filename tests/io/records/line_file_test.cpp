#include <dflow/io/records/line_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

std::vector<std::string> lines_of(std::string_view content) {
  MemoryFileSystem files;
  files.write_file_atomically("/text", content);
  LineReader reader(files, "/text");
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) lines.emplace_back(line);
  CHECK(reader.tell() == content.size());
  std::string_view line;
  CHECK_FALSE(reader.next(line));
  return lines;
}

}  // namespace

TEST_CASE("Lines end with a line feed, with a carriage return before it, or with the file", "[line_file]") {
  using Texts = std::vector<std::string>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == Texts{""});
  CHECK(lines_of("a") == Texts{"a"});
  CHECK(lines_of("a\n") == Texts{"a"});
  CHECK(lines_of("a\n\nb") == Texts{"a", "", "b"});
  CHECK(lines_of("a\r\nb\rc\r\r\n\r") == Texts{"a", "b\rc\r", ""});
}

TEST_CASE("Lines longer than a buffer are read, and every place is one to return to", "[line_file]") {
  MemoryFileSystem files;
  std::string content;
  std::vector<std::string> wanted;
  for (const std::size_t length : {0u, 1u, 65535u, 65536u, 65537u, 300000u, 3u}) {
    wanted.emplace_back(length, static_cast<char>('a' + wanted.size()));
    content += wanted.back() + "\n";
  }
  files.write_file_atomically("/text", content);
  LineReader reader(files, "/text");
  std::vector<std::uint64_t> places;
  for (const std::string& line : wanted) {
    places.push_back(reader.tell());
    std::string_view got;
    REQUIRE(reader.next(got));
    CHECK(got == line);
  }
  for (std::size_t i = places.size(); i-- > 0;) {
    reader.seek(places[i]);
    std::string_view got;
    REQUIRE(reader.next(got));
    CHECK(got == wanted[i]);
  }
  reader.seek(content.size() + 5);
  std::string_view got;
  CHECK_FALSE(reader.next(got));
}

TEST_CASE("Lines of other bytes are read and returned to in the same way", "[line_file]") {
  MemoryFileSystem files;
  files.write_file_atomically("/text", "one\n" + std::string(200000, 'x') + "\r\nlast");
  LineReader reader(std::make_unique<FileSource>(files.open_for_reading("/text")), "text");
  std::string_view line;
  CHECK(reader.next(line));
  CHECK(line == "one");
  CHECK(reader.tell() == 4);
  for (int i = 0; i < 2; ++i) {
    CHECK(reader.next(line));
    CHECK(line.size() == 200000);
    CHECK(reader.next(line));
    CHECK(line == "last");
    CHECK_FALSE(reader.next(line));
    reader.seek(4);
  }
  reader.seek(1'000'000);
  CHECK_FALSE(reader.next(line));
}

TEST_CASE("A line is at hand when it is in memory to its end", "[line_file]") {
  MemoryFileSystem files;
  files.write_file_atomically("/text", std::string_view("one\ntwo\nlast"));
  LineReader reader(files, "/text");
  CHECK_FALSE(reader.has_next_at_hand());
  std::string_view line;
  CHECK(reader.next(line));
  CHECK(reader.has_next_at_hand());
  CHECK(reader.next(line));
  CHECK_FALSE(reader.has_next_at_hand());
}

TEST_CASE("A line that is too long is ResourceExhausted, and the position stays", "[line_file]") {
  MemoryFileSystem files;
  files.write_file_atomically("/text", "short\n" + std::string(200000, 'x') + "\n");
  LineReader reader(files, "/text", 1000);
  std::string_view line;
  CHECK(reader.next(line));
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { reader.next(line); }, Code::resource_exhausted),
               Catch::Contains("'/text' at offset 6") && Catch::Contains("1000"));
  }
  CHECK(reader.tell() == 6);
}
