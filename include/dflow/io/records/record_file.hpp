#pragma once

/// Public: record files, TensorFlow's form of many records in a file.

#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

class DeflatingFile;

/// How a record file as a whole is compressed; a file does not say so itself.
enum class RecordCompression : std::uint8_t { none, gzip, zlib };

/// TensorFlow's names of the compressions in attributes.
constexpr std::array<std::string_view, 3> attr_enum_names(RecordCompression) { return {"", "GZIP", "ZLIB"}; }

struct RecordWriterOptions {
  RecordCompression compression = RecordCompression::none;
  int compression_level = -1;          ///< 0 (stored) to 9, or -1 for zlib's own choice
  bool append = false;                 ///< keep the records that the file has; not with zlib: its stream has one end
  bool is_new = false;                 ///< there must be no file yet; AlreadyExists if another has made it
  std::size_t buffer_bytes = 1 << 18;  ///< written together
};

/// Writes a TFRecord file. Each record is its length (u64), the length's masked CRC-32C, the bytes, and their masked
/// CRC-32C, all little-endian. An existing file is replaced unless `append` or `is_new` is set. Memory is one record
/// and a buffer.
///
///     RecordWriter writer(files, "train.tfrecord");
///     for (const std::string& example : examples) writer.write(example);
///     writer.close();
///
/// Thread safety: one thread at a time.
/// Errors: as FileSystem; Unimplemented for a compression in a library built without zlib. After an error of a write
/// the file may end in a part of a record, and every later call fails with the same status.
class RecordWriter {
 public:
  /// `files` outlives the writer.
  RecordWriter(FileSystem& files, std::string path, const RecordWriterOptions& options = {});
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  /// Closes without reporting errors; `close` reports them.
  ~RecordWriter();

  /// May block.
  void write(std::string_view record);
  /// Blocks until readers of the file see all records.
  void flush();
  /// Blocks until all records would survive a loss of power.
  void sync();
  /// Flushes and ends the file; later calls do nothing, and later writes are FailedPrecondition.
  void close();

  /// The offset of the next record, for `RecordReader::seek`. If the file is compressed, the offset counts from the
  /// place where this writer began.
  std::uint64_t tell() const noexcept { return offset_; }
  const std::string& path() const noexcept { return path_; }

 private:
  template <class Change>
  void change(Change change);
  void write_buffer();

  std::string path_;
  std::size_t buffer_bytes_;
  std::string buffer_;
  std::unique_ptr<WritableFile> file_;
  DeflatingFile* deflating_ = nullptr;  ///< `file_`, if it compresses
  std::uint64_t offset_ = 0;
  Status failed_;
};

struct RecordReaderOptions {
  RecordCompression compression = RecordCompression::none;
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;
  std::size_t buffer_bytes = std::size_t{1} << 20;  ///< read together
  bool reads_ahead = false;  ///< by a thread of the reader's own, which is at most four buffers ahead
};

/// The content of a file, unpacked as it is read. Blocks. `files` outlives the source. Errors: as FileSystem;
/// Unimplemented for a compression in a library built without zlib.
std::unique_ptr<ByteSource> open_record_source(FileSystem& files, const std::string& path,
                                               const RecordReaderOptions& options = {});

/// Reads a TFRecord file in order. Memory is one record and a buffer, or five buffers if it reads ahead, even if the
/// file announces greater lengths. A file may be read while it is written: records appended after the end was seen are
/// found later, if the file has no compression.
///
///     RecordReader reader(files, "train.tfrecord");
///     for (std::string record; reader.next(record);) train_on(record);
///
/// A position can be kept and returned to: `reader.tell()`, later `reader.seek(position)`.
///
/// Thread safety: one thread at a time.
/// Errors: as FileSystem; ResourceExhausted if there is no thread to read ahead. DataLoss, naming path and offset, if
/// a record is cut short or one of its checksums is wrong. ResourceExhausted for a record longer than
/// `max_record_bytes`. After any error the position is unchanged, and the next read tries again.
class RecordReader {
 public:
  /// `files` outlives the reader.
  RecordReader(FileSystem& files, std::string path, const RecordReaderOptions& options = {});
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  ~RecordReader();

  /// Blocks. Reads the next record into `record` and reuses its memory. False at the end; `record` is empty then.
  bool next(std::string& record);
  /// The same without a copy if the record lies in the buffer. The view is valid until the next call. It is empty at
  /// the end and after an error.
  bool next_view(std::string_view& record);
  /// The same as a value. Errors also: OutOfRange at the end, on every call.
  std::string read();
  /// The next record is in memory: reading it does not block.
  bool has_next_at_hand() const;
  /// Goes past the next record and looks only at its length. False, and the position is unchanged, if there is none or
  /// the checksum of the length is wrong: then no later record can be found. Blocks.
  bool pass_over();

  /// The offset of the next record, in the unpacked content if the file is compressed.
  std::uint64_t tell() const noexcept { return offset_; }
  /// Goes to the beginning of a record, an offset from `tell`. In a compressed file the next read unpacks all bytes
  /// before it.
  void seek(std::uint64_t offset) noexcept {
    offset_ = offset;
    window_ = {};
  }
  const std::string& path() const noexcept { return path_; }

 private:
  bool find_record(std::span<const std::byte>& content);
  std::uint64_t checked_length(std::span<const std::byte> header) const;
  bool read_record(std::string& record);
  void read_parts(std::uint64_t length, std::string& record);
  template <class Read>
  bool read_with_place(Read read);

  std::string path_;
  std::uint64_t max_record_bytes_;
  std::unique_ptr<ByteSource> source_;
  std::uint64_t offset_ = 0;
  std::span<const std::byte> window_;  ///< bytes that the source has at hand from `offset_` on
  std::string held_;                   ///< the record of a view that lies in no buffer
};

}  // namespace dflow
