#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow {

/// The layout of a file of records of one length, in bytes.
struct FixedRecordFormat {
  std::uint64_t header_bytes = 0;  ///< before the first record
  std::uint64_t record_bytes = 0;
  std::uint64_t footer_bytes = 0;  ///< after the last record
  std::uint64_t hop_bytes = 0;     ///< from the start of a record to the start of the next; 0: `record_bytes`
  RecordCompression compression = RecordCompression::none;

  friend bool operator==(const FixedRecordFormat&, const FixedRecordFormat&) = default;
};

/// Reads a file of records of one length in order. Memory is three records, as far as there are bytes, two footers and
/// a buffer.
///
/// Thread safety: one thread at a time.
/// Errors: FileSystem's errors. InvalidArgument for records of no bytes, or numbers with a sum that is too large.
/// DataLoss, naming path and offset, if the file ends within its header, a record or its footer. If hops are shorter
/// than records, up to record_bytes - hop_bytes bytes between the last whole record and the footer are no error. After
/// any error the position is unchanged.
class FixedRecordReader {
 public:
  /// `files` outlives the reader.
  FixedRecordReader(FileSystem& files, std::string path, const FixedRecordFormat& format);
  FixedRecordReader(const FixedRecordReader&) = delete;
  FixedRecordReader& operator=(const FixedRecordReader&) = delete;
  ~FixedRecordReader();

  /// Blocks. Reads the next record into `record`; false at the end.
  bool next(std::string& record);
  /// The next record is in memory: reading it does not block.
  bool has_next_at_hand() const;

  /// Records before the next one.
  std::uint64_t number() const noexcept { return number_; }
  /// Goes to a record by its number. Errors: InvalidArgument for a number that is beyond any file.
  void seek(std::uint64_t number);
  const std::string& path() const noexcept { return path_; }

 private:
  std::uint64_t offset_of(std::uint64_t number) const;
  void clear_window();
  bool read_record(std::string& record);

  std::string path_;
  FixedRecordFormat format_;
  std::unique_ptr<ByteSource> source_;
  std::string window_;            ///< bytes of the file; the next record begins at `window_begin_`
  std::size_t window_begin_ = 0;  ///< bytes before it have been read, and are dropped now and then
  std::uint64_t number_ = 0;
};

}  // namespace dflow
