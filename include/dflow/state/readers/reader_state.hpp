#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/state/awaited_resource.hpp>
#include <dflow/state/readers/work_unit.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

class QueueState;

/// How far a reader has come.
struct ReaderProgress {
  std::int64_t num_started = 0;   ///< work units; one more than finished while one is being read
  std::int64_t num_finished = 0;  ///< work units
  std::int64_t num_records = 0;   ///< produced
  std::string work;               ///< the unit that was started last
  WorkPlace place;                ///< in it, while it is being read
  /// What came from a queue while the state was replaced: is read next, before the queue is asked again.
  std::vector<std::string> next_works;

  bool is_at_work() const noexcept { return num_started > num_finished; }
};

/// A protocol buffer: fields 1 to 4 are TensorFlow's ReaderBaseState, and an identity reader writes no others; else 5
/// and 6 are the place, 7 the format's name, and 8 each of what is read next.
std::string serialized(const ReaderProgress& progress, ReaderFormat format);
/// Errors: InvalidArgument for what is no such state, or one of another format.
ReaderProgress parse_reader_progress(std::string_view state, ReaderFormat format);

/// What a node with a reader keeps across steps: the work unit that it reads, and who waits for records. Calls are
/// served one at a time, in the order in which they came. A record that is in memory already is given at once; else a
/// thread of the reader's own reads the file.
///
/// Thread safety: all functions may be called from any thread; none blocks. A `done` is called once, from any thread,
/// also with the status that its token was cancelled with: then what it would have been given is read again by the next
/// call.
class ReaderState final : public AwaitedResource {
 public:
  struct Records {
    std::vector<std::string> keys, values;
  };
  using ReadDone = UniqueFunction<void(Status, Records)>;

  ReaderState(std::string name, ReaderKind kind, std::shared_ptr<FileSystem> files);
  ~ReaderState() override;

  const ReaderKind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;

  /// Gives the next `count` records, fewer, but at least one, at the end of a work unit. Takes its next unit out of
  /// `queue`, of one string each, when it has none; `queue` lives until `done` is called. Errors: those of the queue,
  /// OutOfRange if it is closed and empty; InvalidArgument for other elements; as of WorkUnit, and then the next call
  /// tries again, but for a unit that is not there or may not be read (NotFound, PermissionDenied,
  /// FailedPrecondition), which is passed over. An error after a record of the call is the next call's.
  void read_async(QueueState& queue, std::int64_t count, const CancellationToken& cancellation, ReadDone done);

  /// Of one moment. A call that waits has started nothing, one that reads has not read anything yet.
  ReaderProgress progress() const;
  /// A call that reads at the time ends as before it; one that waits for its queue goes on where that says.
  void set_progress(ReaderProgress progress);

  /// One string [1], `serialized`.
  std::vector<AnyTensor> saved_state() const override;
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

 private:
  struct State;

  const std::string name_;
  const ReaderKind kind_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
