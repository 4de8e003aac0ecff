#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/io/records/fixed_record_file.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dflow {

/// How a reader divides its work into records.
enum class ReaderFormat : std::uint8_t {
  whole_file,    ///< a file is one record
  text_line,     ///< a line of a file of text is one
  fixed_length,  ///< a fixed number of bytes of a file is one
  tf_record,     ///< the records of a TFRecord file
  identity,      ///< the text from the queue is one
};

/// The op of a reader of this format.
std::string_view reader_format_name(ReaderFormat format) noexcept;

/// How a reader was declared.
struct ReaderKind {
  ReaderFormat format = ReaderFormat::identity;
  std::int64_t skip_header_lines = 0;                       ///< of text_line
  FixedRecordFormat fixed = {};                             ///< of fixed_length
  RecordCompression compression = RecordCompression::none;  ///< of tf_record

  friend bool operator==(const ReaderKind&, const ReaderKind&) = default;
};

/// The record of a work unit before which a reader stands. A number that the format does not count is 0.
struct WorkPlace {
  std::uint64_t offset = 0;  ///< in bytes
  std::uint64_t number = 0;  ///< of records, lines

  friend bool operator==(const WorkPlace&, const WorkPlace&) = default;
};

/// A unit of work from a reader's queue, mostly a file's name, as records.
///
/// Thread safety: one thread at a time.
class WorkUnit {
 public:
  enum class Next : std::uint8_t {
    record,
    last_record,  ///< a record, known to be the last
    end,          ///< none
  };

  WorkUnit() = default;
  WorkUnit(const WorkUnit&) = delete;
  WorkUnit& operator=(const WorkUnit&) = delete;
  virtual ~WorkUnit();

  /// May block. Errors: the errors of the file system; DataLoss, naming file and offset, for a record that is damaged
  /// or cut short; ResourceExhausted for a record that is too long. After an error the place is unchanged.
  virtual Next next(std::string& key, std::string& value) = 0;
  /// `next` would not block.
  virtual bool has_next_at_hand() const = 0;
  virtual WorkPlace place() const = 0;
  /// Does not block. Errors: InvalidArgument for a place that no file has.
  virtual void go_to(const WorkPlace& place) = 0;
};

/// Blocks, except for an identity reader. Keys are TensorFlow's. The key of a file, or of an identity record, is the
/// work; of a line, "file:number" from 1 on; of a record of fixed length, "file:number" from 0 on; of a TFRecord,
/// "file:offset". `files` outlives the unit.
///
/// Errors: the errors of the file system; Unimplemented for a compression in a library built without zlib.
std::unique_ptr<WorkUnit> open_work(FileSystem& files, const ReaderKind& kind, const std::string& work);

}  // namespace dflow
