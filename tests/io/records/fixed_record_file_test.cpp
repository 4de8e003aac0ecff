#include <dflow/io/records/fixed_record_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// The records of a file as the format says, one by one.
std::vector<std::string> expected_fixed_records(const std::string& body, std::uint64_t record, std::uint64_t hop) {
  std::vector<std::string> records;
  for (std::uint64_t at = 0; at + record <= body.size(); at += hop) records.push_back(body.substr(at, record));
  return records;
}

}  // namespace

TEST_CASE("Records of one length are read in order and by number, for any header, hop and footer", "[fixed_record]") {
  MemoryFileSystem files;
  std::string letters;
  for (int i = 0; i < 80; ++i) letters += static_cast<char>('0' + i);
  for (const std::uint64_t header : {0u, 1u, 5u}) {
    for (const std::uint64_t footer : {0u, 1u, 4u}) {
      for (const std::uint64_t record : {1u, 2u, 3u}) {
        for (const std::uint64_t hop : {1u, 2u, 3u, 7u}) {
          for (const std::uint64_t count : {0u, 1u, 3u, 11u}) {
            const std::string body = letters.substr(0, count == 0 ? 0 : record + (count - 1) * hop);
            files.write_file_atomically("/f", std::string(header, 'H') + body + std::string(footer, 'F'));
            FixedRecordReader reader(
                files, "/f",
                {.header_bytes = header, .record_bytes = record, .footer_bytes = footer, .hop_bytes = hop});
            const std::vector<std::string> wanted = expected_fixed_records(body, record, hop);
            REQUIRE(wanted.size() == count);
            std::string got;
            for (const std::string& one : wanted) {
              REQUIRE(reader.next(got));
              CHECK(got == one);
            }
            CHECK_FALSE(reader.next(got));
            CHECK_FALSE(reader.next(got));
            CHECK(reader.number() == count);
            for (std::size_t i = wanted.size(); i-- > 0;) {
              reader.seek(i);
              REQUIRE(reader.next(got));
              CHECK(got == wanted[i]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("Short records before a long footer are read without moving the footer each time", "[fixed_record]") {
  MemoryFileSystem files;
  constexpr std::uint64_t bytes = std::uint64_t{1} << 19;
  std::string body(bytes, 'a');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7);
  files.write_file_atomically("/f", body + std::string(bytes, 'F'));
  FixedRecordReader reader(files, "/f", {.record_bytes = 1, .footer_bytes = bytes});
  std::string read, got;
  while (reader.next(got)) read += got;
  CHECK(read == body);
}

TEST_CASE("A record of one length is at hand when it is in memory with as many bytes as the footer has",
          "[fixed_record]") {
  MemoryFileSystem files;
  for (const std::uint64_t header : {0u, 2u}) {
    for (const std::uint64_t footer : {0u, 2u}) {
      for (const std::uint64_t hop : {2u, 3u, 4u}) {
        CAPTURE(header, footer, hop);
        files.write_file_atomically(
            "/f", std::string(header, 'H') + std::string(3 + 2 * hop, 'x') + std::string(footer, 'F'));
        FixedRecordReader reader(files, "/f",
                                 {.header_bytes = header, .record_bytes = 3, .footer_bytes = footer, .hop_bytes = hop});
        std::string got;
        for (int i = 0; i < 3; ++i) {
          CHECK(reader.has_next_at_hand() == (i != 0 && hop <= 3 + footer));  // it looks behind no gap
          REQUIRE(reader.next(got));
        }
        CHECK_FALSE(reader.has_next_at_hand());
        CHECK_FALSE(reader.next(got));
        reader.seek(1);
        CHECK_FALSE(reader.has_next_at_hand());
        CHECK(reader.next(got));
      }
    }
  }
}

TEST_CASE("A file of records of one length that is cut anywhere else is DataLoss", "[fixed_record]") {
  MemoryFileSystem files;
  const std::string whole = "HHabcdefghiFF";  // three records of three bytes
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    files.write_file_atomically("/f", whole.substr(0, size));
    FixedRecordReader reader(files, "/f", {.header_bytes = 2, .record_bytes = 3, .footer_bytes = 2});
    std::string got;
    const Code code = code_of([&] {
      while (reader.next(got)) {
      }
    });
    CHECK(code == (size >= 4 && (size - 4) % 3 == 0 ? Code::ok : Code::data_loss));
    CHECK(reader.number() == (size < 4 ? 0 : (size - 4) / 3));
  }
}

TEST_CASE("Records of no bytes, and numbers that are too large, are refused", "[fixed_record]") {
  MemoryFileSystem files;
  files.write_file_atomically("/f", std::string_view("abc"));
  const auto code = [&](const FixedRecordFormat& format) {
    return code_of([&] { FixedRecordReader(files, "/f", format); });
  };
  CHECK(code({}) == Code::invalid_argument);
  CHECK(code({.record_bytes = ~std::uint64_t{0}, .footer_bytes = 1}) == Code::invalid_argument);
  FixedRecordReader reader(files, "/f", {.record_bytes = std::uint64_t{1} << 40});
  CHECK(code_of([&] { reader.seek(std::uint64_t{1} << 30); }) == Code::invalid_argument);
  CHECK(code_of([&] { reader.seek((std::uint64_t{1} << 22) + 1); }) == Code::invalid_argument);
  std::string got;
  CHECK(code_of([&] { reader.next(got); }) == Code::data_loss);
}
