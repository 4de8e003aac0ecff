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
  /// Works that came from a queue while the state was replaced: read next, before the queue is asked again.
  std::vector<std::string> next_works;

  bool is_at_work() const noexcept { return num_started > num_finished; }
};

/// A protocol buffer. Fields 1 to 4 are TensorFlow's ReaderBaseState, and an identity reader writes no others. Fields
/// 5 and 6 are the place, 7 the format's name, and 8 each of the next works.
std::string serialized(const ReaderProgress& progress, ReaderFormat format);
/// Errors: InvalidArgument if `state` is no reader state, or is of another format.
ReaderProgress parse_reader_progress(std::string_view state, ReaderFormat format);

/// The state that a node with a reader keeps across steps: the work unit that it reads, and the calls that wait for
/// records. Calls are served one at a time, in the order in which they came. A record that is in memory already is
/// given at once; else a thread of the reader's own reads the file.
///
/// Thread safety: all functions may be called from any thread; none blocks. A `done` is called once, from any thread,
/// also with the status that its token was cancelled with. The next call then reads the cancelled call's records
/// again.
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

  /// Gives the next `count` records; at the end of a work unit fewer, but at least one. If it has no unit, it takes
  /// the next one out of `queue`, of one string each; `queue` lives until `done` is called. Errors: the errors of the
  /// queue; OutOfRange if it is closed and empty; InvalidArgument for other elements; the errors of WorkUnit, and then
  /// the next call tries again. A unit that is not there or may not be read (NotFound, PermissionDenied,
  /// FailedPrecondition) is passed over instead. An error after a record of the call goes to the next call.
  void read_async(QueueState& queue, std::int64_t count, const CancellationToken& cancellation, ReadDone done);

  /// The progress at one moment. A waiting call has started nothing; a reading call has not read anything yet.
  ReaderProgress progress() const;
  /// A call that is reading ends as before the change. A call that waits for its queue goes on at the new progress.
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
