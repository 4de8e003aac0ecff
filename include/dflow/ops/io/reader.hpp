#pragma once

#include <dflow/io/records/record_file.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/data_flow/queue.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dflow {

// Readers: a reader takes names of files out of a queue and makes records of the files. A reader keeps its place
// across steps. Any number of steps may read at once; they are served in their order of arrival. A step that waits for
// the queue holds no thread.

struct ReaderAttrs {
  std::string container = {};
  std::string shared_name = {};  ///< the resource's name; if empty, the node's name
};

/// A record is a file: its name and its content. Gives a handle.
struct WholeFileReaderOp : StatefulOp<"WholeFileReaderV2"> {
  using Attrs = ReaderAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A record is a line of a file, "file:number" with the first line as 1. Gives a handle.
struct TextLineReaderOp : StatefulOp<"TextLineReaderV2"> {
  struct Attrs {
    std::int64_t skip_header_lines = 0;  ///< of each file
    std::string container = {};
    std::string shared_name = {};
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A record is a fixed number of bytes of a file, "file:number" with the first record as 0. Gives a handle.
struct FixedLengthRecordReaderOp : StatefulOp<"FixedLengthRecordReaderV2"> {
  struct Attrs {
    std::int64_t header_bytes = 0;  ///< before the first record of a file
    std::int64_t record_bytes = 0;
    std::int64_t footer_bytes = 0;  ///< after the last record
    std::int64_t hop_bytes = 0;     ///< from where one record begins to where the next does; 0: `record_bytes`
    std::string container = {};
    std::string shared_name = {};
    RecordCompression encoding = RecordCompression::none;
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A record is a record of a TFRecord file, "file:offset". Gives a handle.
struct TFRecordReaderOp : StatefulOp<"TFRecordReaderV2"> {
  struct Attrs {
    std::string container = {};
    std::string shared_name = {};
    RecordCompression compression_type = RecordCompression::none;
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A record is a string from the queue, as key and as value. Gives a handle.
struct IdentityReaderOp : StatefulOp<"IdentityReaderV2"> {
  using Attrs = ReaderAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// The next record: reader, queue -> key [], value []. Errors:
/// - OutOfRange if the queue is closed and empty and the reader has no more records;
/// - NotFound and other errors of the file system, naming the file, which the reader passes over;
/// - DataLoss, naming file and offset, for a damaged or cut record: the reader stays at this record;
/// - ResourceExhausted for a record of more than a gigabyte;
/// - InvalidArgument for a queue with other elements than single strings.
struct ReaderRead : StatefulOp<"ReaderReadV2"> {
  using Inputs = In<ResourceHandle, ResourceHandle>;
  using Outputs = Out<std::string, std::string>;
  static void infer(InferContext& context);
};

/// The next num_records records; at the end of a file fewer, but at least one: reader, queue, num_records [] -> keys
/// [n], values [n]. Errors: as of ReaderRead, before the first record.
struct ReaderReadUpTo : StatefulOp<"ReaderReadUpToV2"> {
  using Inputs = In<ResourceHandle, ResourceHandle, std::int64_t>;
  using Outputs = Out<std::string, std::string>;
  static void infer(InferContext& context);
};

/// The number of records that the reader has given.
struct ReaderNumRecordsProduced : StatefulOp<"ReaderNumRecordsProducedV2"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The number of files, or other work units from the queue, that the reader has read to the end. The reader knows the
/// end of a file once it has looked for a record there.
struct ReaderNumWorkUnitsCompleted : StatefulOp<"ReaderNumWorkUnitsCompletedV2"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The place of the reader, as a string that readers of its kind understand.
struct ReaderSerializeState : StatefulOp<"ReaderSerializeStateV2"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// Lets the reader go on from a saved place: reader, state []. Errors: InvalidArgument if it is no state of its kind.
struct ReaderRestoreState : StatefulOp<"ReaderRestoreStateV2"> {
  using Inputs = In<ResourceHandle, std::string>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Resets the reader: it leaves its current file, as if it had read nothing.
struct ReaderReset : StatefulOp<"ReaderResetV2"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct ReaderOptions {
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Readers with the same shared name on one device are one reader, across sessions.
  std::string_view shared_name = {};
};

struct TextLineReaderOptions {
  std::int64_t skip_header_lines = 0;  ///< of each file
  std::string_view name = {};
  std::string_view container = {};
  std::string_view shared_name = {};
};

struct FixedLengthRecordReaderOptions {
  std::int64_t header_bytes = 0;  ///< before the first record of a file
  std::int64_t record_bytes = 0;  ///< at least 1
  std::int64_t footer_bytes = 0;  ///< after the last record
  std::int64_t hop_bytes = 0;     ///< from where one record begins to where the next does; 0: `record_bytes`
  RecordCompression compression = RecordCompression::none;
  std::string_view name = {};
  std::string_view container = {};
  std::string_view shared_name = {};
};

struct TFRecordReaderOptions {
  RecordCompression compression = RecordCompression::none;
  std::string_view name = {};
  std::string_view container = {};
  std::string_view shared_name = {};
};

/// The part that readers of all kinds share. A reader lives across steps on the device it is placed on, with its
/// queue, and is saved with the variables.
///
/// Thread safety: a value type; builds, see Graph. Any number of steps may use a reader at once; they are served in
/// their order of arrival. A step that ends early while it waits, or reads, has taken nothing.
/// Errors: as of the ops: ReaderRead, ReaderReadUpTo, ReaderRestoreState.
class Reader {
 public:
  using Records = std::tuple<Output<std::string>, Output<std::string>>;

  Reader() = default;

  const AnyOutput& handle() const noexcept { return handle_; }

  /// A record: key [], value [].
  Records read(const detail::TypedQueue<std::string>& queue, const At& at = {}) const;
  /// keys [n], values [n], of at most num_records records: no more than the file has left, but at least one.
  Records read_up_to(const detail::TypedQueue<std::string>& queue, const Output<std::int64_t>& num_records,
                     const At& at = {}) const;
  Records read_up_to(const detail::TypedQueue<std::string>& queue, std::int64_t num_records, const At& at = {}) const;
  Output<std::int64_t> num_records_produced(const At& at = {}) const;
  Output<std::int64_t> num_work_units_completed(const At& at = {}) const;
  Output<std::string> serialize_state(const At& at = {}) const;
  Operation restore_state(const Output<std::string>& state, const At& at = {}) const;
  Operation restore_state(std::string_view state, const At& at = {}) const;
  Operation reset(const At& at = {}) const;

 protected:
  explicit Reader(AnyOutput handle) : handle_(handle) {}

 private:
  AnyOutput handle_;
};

/// Gives files: name and content.
///
/// ```cpp
/// df::FifoQueue<std::string> names(graph, {.shapes = {{}}});
/// df::WholeFileReader files(graph);
/// auto [name, content] = files.read(names);
/// ```
class WholeFileReader : public Reader {
 public:
  WholeFileReader() = default;
  explicit WholeFileReader(Graph& graph, const ReaderOptions& options = {}, const At& at = {});
};

/// Gives the lines of files, without their ends: "\n" or "\r\n". Errors: InvalidArgument for a negative number of
/// lines.
class TextLineReader : public Reader {
 public:
  TextLineReader() = default;
  explicit TextLineReader(Graph& graph, const TextLineReaderOptions& options = {}, const At& at = {});
};

/// Gives records of one length. Errors: InvalidArgument for a `record_bytes` below 1 or another number below 0.
class FixedLengthRecordReader : public Reader {
 public:
  FixedLengthRecordReader() = default;
  explicit FixedLengthRecordReader(Graph& graph, const FixedLengthRecordReaderOptions& options, const At& at = {});
};

/// Gives the records of TFRecord files. In steps Unimplemented for a compression in a library built without zlib.
class TFRecordReader : public Reader {
 public:
  TFRecordReader() = default;
  explicit TFRecordReader(Graph& graph, const TFRecordReaderOptions& options = {}, const At& at = {});
};

/// Gives the strings of the queue, as key and value.
class IdentityReader : public Reader {
 public:
  IdentityReader() = default;
  explicit IdentityReader(Graph& graph, const ReaderOptions& options = {}, const At& at = {});
};

}  // namespace dflow
