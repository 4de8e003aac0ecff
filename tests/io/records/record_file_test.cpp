#include <dflow/io/records/record_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

const std::vector<std::string> few_records = {"foo", "", std::string(300, 'x')};

void write_records(FileSystem& files, const std::vector<std::string>& records,
                   const RecordWriterOptions& options = {}) {
  RecordWriter writer(files, "/file", options);
  for (const std::string& record : records) writer.write(record);
  writer.close();
}

std::vector<std::string> read_records(FileSystem& files, const std::string& path,
                                      const RecordReaderOptions& options = {}) {
  RecordReader reader(files, path, options);
  std::vector<std::string> records;
  for (std::string record; reader.next(record);) records.push_back(record);
  return records;
}

/// The error of reading a whole file with these bytes.
Status status_of_file(std::string_view bytes, const RecordReaderOptions& options = {}) {
  MemoryFileSystem files;
  files.write_file_atomically("/file", bytes);
  return status_of([&] { return read_records(files, "/file", options); });
}

bool can_compress_records() {
  MemoryFileSystem files;
  return code_of([&] {
           write_records(files, {}, {.compression = RecordCompression::gzip});
           return true;
         }) != Code::unimplemented;
}

/// A record with a false length and the right checksum of that length.
std::string record_of_length(std::uint64_t length, std::string_view content) {
  std::string bytes;
  ByteWriter out(bytes);
  out.u64(length);
  out.u32(mask_crc32c(crc32c(bytes)));
  return bytes + std::string(content);
}

}  // namespace

TEST_CASE("records that are written are read, and then the end, however often", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, few_records);
  CHECK(read_records(files, "/file") == few_records);
  RecordReader reader(files, "/file");
  for (const std::string& record : few_records) CHECK(reader.read() == record);
  for (int i = 0; i < 3; ++i) {
    std::string record = "left";
    CHECK_FALSE(reader.next(record));
    CHECK(record.empty());
    const Status end = status_of([&] { return reader.read(); });
    CHECK(end.code() == Code::out_of_range);
    CHECK(mentions(end, "/file"));
  }
}

TEST_CASE("the bytes of a record file are TensorFlow's", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"foo", ""});
  // Published bytes: the masked checksums of "foo" and of no bytes are febe8a61 and a282ead8.
  CHECK(files.read_file("/file") ==
        "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
        "foo\x61\x8a\xbe\xfe\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"sv);

  const char* root = std::getenv("DFLOW_DATA");
  if (root == nullptr) {
    WARN("DFLOW_DATA is not set: formats/records.tfrecord is not read");
    return;
  }
  PosixFileSystem disk;
  const std::vector<std::string> golden = read_records(disk, std::string(root) + "/formats/records.tfrecord");
  REQUIRE(golden.size() == 5);
  CHECK(golden[0] == "foo");
  CHECK(golden[1] == "bar");
  CHECK(golden[2].empty());
  CHECK(golden[3] == "xxxx");
  CHECK(golden[4].size() == 2560);
  write_records(files, golden);
  CHECK(files.read_file("/file") == disk.read_file(std::string(root) + "/formats/records.tfrecord"));
}

TEST_CASE("compressed files are read as TensorFlow writes them", "[record_file]") {
  if (!can_compress_records()) return;
  // tf.io.TFRecordWriter of TensorFlow 2.21, the records of `few`.
  constexpr std::string_view gzip =
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x63\x66\x80\x80\x0d\x33\x3d\xf9\xd2\xf2\xf3\x13\xbb\xf6\xfd\x83\x8a"
      "\x30\x68\x32\xcf\x60\xbf\xf1\xaa\x69\x91\x0e\x23\x84\xff\xe9\x5f\xf4\xdc\x8a\x51\x40\x34\x38\xdb\x34\x45\x11"
      "\x00\x2c\x77\x20\x94\x5f\x01\x00\x00"sv;
  constexpr std::string_view zlib =
      "\x78\x9c\x63\x66\x80\x80\x0d\x33\x3d\xf9\xd2\xf2\xf3\x13\xbb\xf6\xfd\x83\x8a\x30\x68\x32\xcf\x60\xbf\xf1\xaa"
      "\x69\x91\x0e\x23\x84\xff\xe9\x5f\xf4\xdc\x8a\x51\x40\x34\x38\xdb\x34\x45\x11\x00\x8c\x55\x9a\xf9"sv;
  MemoryFileSystem files;
  files.write_file_atomically("/gzip", gzip);
  files.write_file_atomically("/zlib", zlib);
  CHECK(read_records(files, "/gzip", {.compression = RecordCompression::gzip}) == few_records);
  CHECK(read_records(files, "/zlib", {.compression = RecordCompression::zlib}) == few_records);
  for (const auto& [bytes, compression] :
       {std::pair(gzip, RecordCompression::gzip), std::pair(zlib, RecordCompression::zlib)}) {
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      CHECK(status_of_file(bytes.substr(0, size), {.compression = compression}).code() == Code::data_loss);
    }
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged(bytes);
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      // Some bits have no effect: the header's time, padding, other ways to repeat the same letter.
      MemoryFileSystem other;
      other.write_file_atomically("/file", damaged);
      std::vector<std::string> records;
      const Code code = code_of([&] { return records = read_records(other, "/file", {.compression = compression}); });
      const bool is_same = code == Code::ok && records == few_records;
      CHECK((is_same || code == Code::data_loss));
    }
    CHECK(status_of_file(std::string(bytes) + "x", {.compression = compression}).code() == Code::data_loss);
    // Content that is not compressed, or is compressed in another way.
    CHECK(status_of_file(record_of_length(3, "foo"), {.compression = compression}).code() == Code::data_loss);
  }
  CHECK(status_of_file(zlib, {.compression = RecordCompression::gzip}).code() == Code::data_loss);
  CHECK(status_of_file(gzip).code() == Code::data_loss);
  CHECK(status_of_file("", {.compression = RecordCompression::gzip}).ok());
}

TEST_CASE("compressed files are written and sought in", "[record_file]") {
  if (!can_compress_records()) return;
  std::mt19937 random(11);
  std::vector<std::string> records;
  for (int i = 0; i < 200; ++i) records.emplace_back(random() % 5000, static_cast<char>('a' + random() % 26));
  MemoryFileSystem files;
  for (const RecordCompression compression : {RecordCompression::gzip, RecordCompression::zlib}) {
    for (const int level : {-1, 0, 9}) {
      write_records(files, records, {.compression = compression, .compression_level = level, .buffer_bytes = 1000});
      RecordReader reader(files, "/file", {.compression = compression});
      std::vector<std::uint64_t> places;
      for (const std::string& record : records) {
        places.push_back(reader.tell());
        REQUIRE(reader.read() == record);
      }
      CHECK(code_of([&] { return reader.read(); }) == Code::out_of_range);
      for (const std::size_t i : {150u, 3u, 4u, 199u}) {
        reader.seek(places[i]);
        CHECK(reader.read() == records[i]);
      }
      reader.seek(std::uint64_t{1} << 40);
      CHECK(code_of([&] { return reader.read(); }) == Code::out_of_range);
    }
  }
  CHECK(code_of([&] {
          write_records(files, few_records, {.compression = RecordCompression::gzip, .compression_level = 10});
          return true;
        }) == Code::invalid_argument);
}

TEST_CASE("a damaged byte anywhere is DataLoss that names path and offset", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"abc", "defg"});
  const std::string whole = files.read_file("/file");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Status status = status_of_file(damaged);
    CHECK(status.code() == Code::data_loss);
    CHECK(mentions(status, bit / 8 < 19 ? "'/file' at offset 0" : "'/file' at offset 19"));
  }
}

TEST_CASE("a file cut at any byte but between records is DataLoss", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"abc", "", "defg"});
  const std::string whole = files.read_file("/file");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const bool is_between = size == 0 || size == 19 || size == 35;
    CHECK(status_of_file(whole.substr(0, size)).code() == (is_between ? Code::ok : Code::data_loss));
  }
}

TEST_CASE("a length that is too large for the file or the limit takes no memory", "[record_file]") {
  // 2^62 bytes would not fit anywhere.
  const Status limited = status_of_file(record_of_length(std::uint64_t{1} << 62, "abc"));
  CHECK(limited.code() == Code::resource_exhausted);
  const RecordReaderOptions all{.max_record_bytes = ~std::uint64_t{0}};
  CHECK(status_of_file(record_of_length(std::uint64_t{1} << 62, "abc"), all).code() == Code::data_loss);
  CHECK(status_of_file(record_of_length(~std::uint64_t{0}, "abc"), all).code() == Code::resource_exhausted);
  MemoryFileSystem files;
  write_records(files, {"abcd"});
  CHECK(read_records(files, "/file", {.max_record_bytes = 4}).size() == 1);
  CHECK(code_of([&] { return read_records(files, "/file", {.max_record_bytes = 3}); }) == Code::resource_exhausted);
}

TEST_CASE("after an error the position stays, and the damage can be stepped over", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"abc", "defg"});
  std::string damaged = files.read_file("/file");
  damaged[13] ^= 1;
  files.write_file_atomically("/file", damaged);
  RecordReader reader(files, "/file");
  for (int i = 0; i < 2; ++i) {
    CHECK(code_of([&] { return reader.read(); }) == Code::data_loss);
    CHECK(reader.tell() == 0);
  }
  reader.seek(19);
  CHECK(reader.read() == "defg");
}

TEST_CASE("records that do not fit into the buffer are read and checked, whatever the string held", "[record_file]") {
  std::mt19937 random(5);
  std::vector<std::string> records;
  constexpr std::size_t buffer = FileSource::default_buffer_bytes;
  for (const std::size_t size : {buffer - 17, buffer, 7ul, 3 * buffer + 1, 0ul, buffer + 1, 5 * buffer, 1000ul}) {
    std::string record(size, '\0');
    for (char& each : record) each = static_cast<char>(random());
    records.push_back(std::move(record));
  }
  MemoryFileSystem files;
  write_records(files, records);
  for (const std::size_t buffer_bytes : {std::size_t{1}, std::size_t{100}, buffer, 8 * buffer}) {
    CHECK(read_records(files, "/file", {.buffer_bytes = buffer_bytes}) == records);
    RecordReader reader(files, "/file", {.buffer_bytes = buffer_bytes});
    for (const std::string& record : records) {
      std::string fresh;
      REQUIRE(reader.next(fresh));
      CHECK(fresh == record);
    }
  }
}

TEST_CASE("damage anywhere in a record larger than the buffer is found, and nothing of it is given", "[record_file]") {
  constexpr std::size_t buffer = FileSource::default_buffer_bytes;
  MemoryFileSystem files;
  write_records(files, {std::string(3 * buffer, 'x')});
  const std::string whole = files.read_file("/file");
  for (const std::size_t at : {std::size_t{12}, buffer - 1, buffer, buffer + 12, 2 * buffer, 3 * buffer + 11}) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    files.write_file_atomically("/file", damaged);
    RecordReader reader(files, "/file");
    std::string record = "left";
    const Status status = status_of([&] { return reader.next(record); });
    CHECK(status.code() == Code::data_loss);
    CHECK(mentions(status, "'/file' at offset 0"));
    CHECK(record.empty());
    CHECK(reader.tell() == 0);
  }
}

TEST_CASE("a record is at hand while all of it is in the buffer", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"abc", "defg", std::string(100, 'x')});
  RecordReader reader(files, "/file", {.buffer_bytes = 50});  // the third begins in it
  CHECK_FALSE(reader.has_next_at_hand());
  CHECK(reader.read() == "abc");
  CHECK(reader.has_next_at_hand());
  CHECK(reader.read() == "defg");
  CHECK_FALSE(reader.has_next_at_hand());
  CHECK(reader.read().size() == 100);
  reader.seek(19);
  CHECK_FALSE(reader.has_next_at_hand());
  CHECK(reader.read() == "defg");
}

TEST_CASE("a record that ends where the buffer ends is at hand, one that lacks a byte is not", "[record_file]") {
  MemoryFileSystem files;
  for (const std::string last : {"", "defg"}) {
    write_records(files, {"abc", last});
    const std::size_t size = files.read_file("/file").size();
    for (const std::size_t buffer : {size - 1, size, size + 1}) {
      CAPTURE(last, size, buffer);
      RecordReader reader(files, "/file", {.buffer_bytes = buffer});
      CHECK_FALSE(reader.has_next_at_hand());
      CHECK(reader.read() == "abc");
      CHECK(reader.has_next_at_hand() == (buffer >= size));
      CHECK(reader.read() == last);
      CHECK_FALSE(reader.has_next_at_hand());
    }
  }
}

TEST_CASE("a position of the writer or of a reader is one for another reader", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  writer.write("one");
  const std::uint64_t second = writer.tell();
  writer.write("two");
  writer.flush();
  RecordReader first_reader(files, "/file");
  CHECK(first_reader.read() == "one");
  CHECK(first_reader.tell() == second);
  RecordReader reader(files, "/file", {.buffer_bytes = 1});
  reader.seek(second);
  CHECK(reader.read() == "two");
  CHECK(reader.tell() == writer.tell());
}

TEST_CASE("a file that grows is followed", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  writer.write("one");
  writer.flush();
  RecordReader reader(files, "/file");
  CHECK(reader.read() == "one");
  CHECK(code_of([&] { return reader.read(); }) == Code::out_of_range);
  writer.write("two");
  CHECK(code_of([&] { return reader.read(); }) == Code::out_of_range);
  writer.flush();
  CHECK(reader.read() == "two");
}

TEST_CASE("records are the same as strings, as views, and read ahead, of whatever sizes", "[record_file]") {
  MemoryFileSystem files;
  std::mt19937 random(5);
  std::vector<std::string> records;
  for (const std::size_t most : {1u, 20u, 300u, 5'000u, 70'000u, 700'000u, 3'000'000u}) {
    for (int i = 0; i < 12; ++i) {
      std::string record(i == 11 ? most : random() % most, '\0');
      for (std::size_t at = 0; at < record.size(); at += 1 + at / 50) record[at] = static_cast<char>(random());
      records.push_back(std::move(record));
    }
  }
  std::shuffle(records.begin(), records.end(), random);
  write_records(files, records);
  for (const std::size_t buffer : {1u, 16u, 100u, 4'096u, 65'536u, 1u << 20}) {
    for (const bool reads_ahead : {false, true}) {
      if (buffer < 100 && reads_ahead) continue;  // a block for each byte
      INFO("buffer of " << buffer << (reads_ahead ? ", read ahead" : ""));
      RecordReader reader(files, "/file", {.buffer_bytes = buffer, .reads_ahead = reads_ahead});
      std::vector<std::uint64_t> positions;
      std::string record = "before";
      std::string_view view;
      bool are_same = true;
      for (std::size_t i = 0; i < records.size(); ++i) {
        positions.push_back(reader.tell());
        if (i % 3 == 0) {
          are_same = are_same && reader.next(record) && record == records[i];
        } else if (i % 3 == 1) {
          are_same = are_same && reader.next_view(view) && view == records[i];
        } else {
          are_same = are_same && reader.read() == records[i];
        }
      }
      CHECK(are_same);
      for (int i = 0; i < 2; ++i) {
        CHECK_FALSE(reader.next(record));
        CHECK(record.empty());
        CHECK_FALSE(reader.next_view(view));
        CHECK(view.empty());
      }
      for (int i = 0; i < 60; ++i) {
        const std::size_t at = random() % records.size();
        reader.seek(positions[at]);
        CHECK(reader.tell() == positions[at]);
        CHECK((reader.next_view(view) && view == records[at]));
      }
    }
  }
}

TEST_CASE("damage is found in records of all sizes, however they are read", "[record_file]") {
  std::mt19937 random(6);
  for (const std::size_t size : {5u, 200u, 5'000u, 300'000u}) {
    MemoryFileSystem files;
    write_records(files, {std::string(size, 'a'), std::string(size, 'b')});
    const std::string whole = files.read_file("/file");
    for (int i = 0; i < 20; ++i) {
      std::string damaged = whole;
      const std::size_t second = whole.size() / 2;
      damaged[second + random() % second] ^= static_cast<char>(1 << random() % 8);
      files.write_file_atomically("/file", damaged);
      for (const bool reads_ahead : {false, true}) {
        RecordReader reader(files, "/file", {.buffer_bytes = 4'096, .reads_ahead = reads_ahead});
        std::string_view view;
        CHECK((reader.next_view(view) && view == std::string(size, 'a')));
        const Status status = status_of([&] { return reader.next_view(view); });
        CHECK((status.code() == Code::data_loss || status.code() == Code::resource_exhausted));
        CHECK(status.message().find("at offset " + std::to_string(second)) != std::string::npos);
        CHECK(view.empty());
        std::string record = "before";
        CHECK_FALSE(status_of([&] { return reader.next(record); }).ok());
        CHECK(record.empty());
        CHECK(reader.tell() == second);
        reader.seek(0);
        CHECK(reader.read() == std::string(size, 'a'));
      }
    }
  }
}

TEST_CASE("a file that grows is followed by who reads ahead", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  RecordReader reader(files, "/file", {.reads_ahead = true});
  std::string_view view;
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(reader.next_view(view));
    writer.write(std::to_string(i));
    CHECK_FALSE(reader.next_view(view));
    writer.flush();
    CHECK((reader.next_view(view) && view == std::to_string(i)));
  }
}

namespace {

/// Files that throw something other than an Error at every third read, as a user's own files may.
class ThrowingFiles final : public dflow::testing::ChangedFiles {
 public:
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    return std::make_unique<File>(files.open_for_reading(path));
  }

 private:
  class File final : public RandomAccessFile {
   public:
    explicit File(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      if (++num_reads_ % 3 == 0) throw std::runtime_error("the file's own error");
      return file_->read_at(offset, into);
    }

   private:
    std::unique_ptr<RandomAccessFile> file_;
    mutable int num_reads_ = 0;
  };
};

}  // namespace

TEST_CASE("a read is tried again after any exception, and gives the record", "[record_file]") {
  ThrowingFiles files;
  std::vector<std::string> records;
  for (int i = 0; i < 200; ++i)
    records.push_back(std::string(static_cast<std::size_t>(i * 7 % 90), char('a' + i % 26)));
  write_records(files, records);
  for (const bool reads_ahead : {false, true}) {
    RecordReader reader(files, "/file", {.buffer_bytes = 150, .reads_ahead = reads_ahead});
    const auto next = [&](std::string_view& view) {
      for (;;) {
        try {
          return reader.next_view(view);
        } catch (const std::runtime_error& error) {
          REQUIRE(error.what() == "the file's own error"sv);
        }
      }
    };
    std::string_view view;
    for (const std::string& record : records) {
      REQUIRE(next(view));
      REQUIRE(view == record);
    }
    CHECK_FALSE(next(view));
  }
}

TEST_CASE("a file is replaced, or appended to where that is asked for", "[record_file]") {
  MemoryFileSystem files;
  write_records(files, {"old"});
  write_records(files, {"new"});
  CHECK(read_records(files, "/file") == std::vector<std::string>{"new"});
  {
    RecordWriter writer(files, "/file", {.append = true});
    CHECK(writer.tell() == files.file_size("/file"));
    writer.write("more");
  }
  CHECK(read_records(files, "/file") == std::vector<std::string>{"new", "more"});
  CHECK(code_of([&] {
          write_records(files, {}, {.compression = RecordCompression::zlib, .append = true});
          return true;
        }) == Code::invalid_argument);
  if (!can_compress_records()) return;
  write_records(files, {"a"}, {.compression = RecordCompression::gzip});
  write_records(files, {"b"}, {.compression = RecordCompression::gzip, .append = true});
  CHECK(read_records(files, "/file", {.compression = RecordCompression::gzip}) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a writer that has failed keeps failing", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  writer.write("one");
  files.fail_change(1, Status::resource_exhausted("disk full"));
  const auto flush = [&] {
    writer.flush();
    return true;
  };
  CHECK(code_of(flush) == Code::resource_exhausted);
  CHECK(code_of(flush) == Code::resource_exhausted);
  CHECK(code_of([&] {
          writer.close();
          return true;
        }) == Code::resource_exhausted);
  CHECK(code_of([&] { return read_records(files, "/file"); }) == Code::data_loss);
}

TEST_CASE("a writer that is closed takes no more", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  writer.close();
  writer.close();
  CHECK(code_of([&] {
          writer.write("late");
          return true;
        }) == Code::failed_precondition);
}

TEST_CASE("what is synced outlives a loss of power", "[record_file]") {
  MemoryFileSystem files;
  RecordWriter writer(files, "/file");
  writer.write("kept");
  writer.sync();
  writer.write("lost");
  writer.flush();
  files.crash({.keeps_names = true});
  CHECK(read_records(files, "/file") == std::vector<std::string>{"kept"});
}

TEST_CASE("a flushed compressed file can be read as far as it goes", "[record_file]") {
  if (!can_compress_records()) return;
  MemoryFileSystem files;
  RecordWriter writer(files, "/file", {.compression = RecordCompression::gzip});
  writer.write("one");
  writer.flush();
  RecordReader reader(files, "/file", {.compression = RecordCompression::gzip});
  CHECK(reader.read() == "one");
  CHECK(code_of([&] { return reader.read(); }) == Code::data_loss);
  writer.write("two");
  writer.close();
  CHECK(reader.read() == "two");
  CHECK(code_of([&] { return reader.read(); }) == Code::out_of_range);
}

TEST_CASE("a record file that is missing is NotFound", "[record_file]") {
  MemoryFileSystem files;
  CHECK(code_of([&] { return RecordReader(files, "/none").read(); }) == Code::not_found);
}

TEST_CASE("a buffer that no memory holds is refused, whatever its size") {
  MemoryFileSystem files;
  RecordWriter(files, "/r").write("a");
  for (const std::size_t size :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - 100, std::size_t{1} << 62}) {
    CHECK(code_of([&] {
            RecordReader reader(files, "/r", {.buffer_bytes = size});
            std::string record;
            return reader.next(record);
          }) == Code::resource_exhausted);
  }
}
