#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow {

/// Where the records of a file of records of one length are, in bytes.
struct FixedRecordFormat {
  std::uint64_t header_bytes = 0;  ///< before the first record
  std::uint64_t record_bytes = 0;
  std::uint64_t footer_bytes = 0;  ///< after the last record
  std::uint64_t hop_bytes = 0;     ///< from where one record begins to where the next does; 0: `record_bytes`
  RecordCompression compression = RecordCompression::none;

  friend bool operator==(const FixedRecordFormat&, const FixedRecordFormat&) = default;
};

/// Reads a file of records of one length in order. Memory is three records, as far as there are bytes, two footers and
/// a buffer.
///
/// Thread safety: one thread at a time.
/// Errors: those of FileSystem. InvalidArgument for records of no bytes, or numbers whose sum is too large. DataLoss,
/// naming path and offset, for a file that ends within its header, a record or its footer; where records are left
/// between hops, bytes after the last whole record are no error, unless there are more of them than of a record that
/// the hop has left. After any of them the position is unchanged.
class FixedRecordReader {
 public:
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
  /// Goes to a record by its number. Errors: InvalidArgument for one that is beyond any file.
  void seek(std::uint64_t number);
  const std::string& path() const noexcept { return path_; }

 private:
  std::uint64_t offset_of(std::uint64_t number) const;
  void clear_window();
  bool read_record(std::string& record);

  std::string path_;
  FixedRecordFormat format_;
  std::unique_ptr<ByteSource> source_;
  std::string window_;            ///< bytes of the file, from `window_begin_` on those where the next record begins
  std::size_t window_begin_ = 0;  ///< what is before has been read, and is dropped now and then
  std::uint64_t number_ = 0;
};

}  // namespace dflow
