#pragma once

/// Public: event files, which TensorBoard reads.

#include <dflow/base/clock.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/lifetime.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/trace/events/event.hpp>
#include <dflow/trace/events/hyperparameters.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

class Graph;
class GraphStore;
struct StepStats;

struct EventWriterOptions {
  std::string host;    ///< in the file's name; the machine's if empty
  std::string suffix;  ///< at the end of the name
  /// Added events are written when they take `buffer_bytes`, when `flush_every` has passed since the last write, or by
  /// `flush`.
  std::size_t buffer_bytes = std::size_t{1} << 16;
  Duration flush_every = std::chrono::seconds(120);
};

/// Writes an event file that TensorBoard shows: "events.out.tfevents.<seconds since 1970>.<host><suffix>" in a folder.
/// The folder is made when the first event is written. The first event in the file is the version.
///
///     EventWriter events(files, "logs/run1", clock);
///     events.add_graph(graph);
///     events.add_scalar("loss", loss, step);
///     events.add_histogram("layer1/weights", weights, step);
///     events.close();
///
/// An existing file of that name stays as it is: the writer takes another name. If its file was deleted meanwhile, a
/// new file replaces it and holds the events that are written from then on.
///
/// Thread safety: safe; a thread that writes to the file blocks the others.
/// Errors: the errors of FileSystem, also from the functions that add, and then from each later call; the errors of
/// summary.hpp for the added values; FailedPrecondition after `close`.
class EventWriter {
 public:
  /// Keeps `files` and `clock` alive; a null `clock` is the machine's. Errors: InvalidArgument if `files` is null.
  explicit EventWriter(std::shared_ptr<FileSystem> files, std::string directory,
                       std::shared_ptr<const Clock> clock = nullptr, EventWriterOptions options = {});
  /// `files` and `clock` outlive the writer.
  EventWriter(FileSystem& files, std::string directory, const Clock& clock, EventWriterOptions options = {});
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  /// Closes without reporting errors; `close` reports them.
  ~EventWriter();

  void add_scalar(std::string_view tag, double value, std::int64_t step);
  void add_histogram(std::string_view tag, const AnyTensor& values, std::int64_t step);
  void add_image(std::string_view tag, const AnyTensor& image, std::int64_t step, int max_images = 3);
  void add_audio(std::string_view tag, const AnyTensor& samples, std::int64_t sample_rate, std::int64_t step);
  void add_text(std::string_view tag, std::string_view text, std::int64_t step);
  void add_summary(Summary summary, std::int64_t step);
  /// Adds the bytes of a Summary. Errors also: DataLoss, and nothing is written then.
  void add_summary(std::string_view serialized, std::int64_t step);
  /// The same for the output of a summary op, []. Errors also: InvalidArgument for another shape.
  template <std::same_as<Tensor<std::string>> S>
  void add_summary(const S& serialized, std::int64_t step) {
    add_summary_tensor(serialized, step);
  }

  void add_graph(const Graph& graph, std::int64_t step = 0);
  void add_graph(const GraphStore& graph, std::int64_t step = 0);
  /// Adds a step's statistics, to be shown on the graph. Errors also: AlreadyExists for a tag that this writer has
  /// had.
  void add_run_metadata(std::string_view tag, const StepStats& stats, std::int64_t step);
  /// The same under the first of "tag", "tag (2)", "tag (3)" and so on that this writer has not had.
  void add_more_run_metadata(std::string_view tag, const StepStats& stats, std::int64_t step);

  /// The first function marks that a run with these hyperparameters begins now, the second that it ends.
  void add_hyperparameters(HyperparameterRun run);
  void add_hyperparameters_end(bool has_succeeded);

  /// Training starts with `step`. All earlier events of that step and later steps are void, in other files of the
  /// folder too.
  void add_start(std::int64_t step);
  void add_checkpoint(std::string_view path, std::int64_t step);
  void add_stop(std::int64_t step);

  /// Adds an event, with the clock's time if `wall_time` is 0.
  void add(Event event);

  /// Blocks until readers of the file see all events.
  void flush();
  /// Flushes and ends the file; later calls do nothing.
  void close();

  /// The path of the file that was last written to; empty before the first write.
  std::string path() const;

  /// For hooks, which do not own the writer.
  Reference<EventWriter> reference() { return {*this, lifetime_}; }

 private:
  void add_summary_tensor(const Tensor<std::string>& serialized, std::int64_t step);

  struct State;
  std::unique_ptr<State> state_;
  Lifetime lifetime_;
};

/// Reads an event file in order; the file may be read while it is written.
///
///     EventReader reader(files, path);
///     while (std::optional<Event> event = reader.next()) {
///       if (const Summary* summary = std::get_if<Summary>(&event->content)) show(*summary);
///     }
///
/// Thread safety: one thread at a time.
/// Errors: as RecordReader; DataLoss, naming path and offset, also for a record that is no event.
class EventReader {
 public:
  /// `files` outlives the reader.
  EventReader(FileSystem& files, std::string path, const RecordReaderOptions& options = {});

  /// Blocks. Returns nothing at the end; more events may come later.
  std::optional<Event> next();
  /// The offset of the next event.
  std::uint64_t tell() const noexcept { return records_.tell(); }
  void seek(std::uint64_t offset) noexcept { records_.seek(offset); }

 private:
  RecordReader records_;
  std::string record_;
};

/// The paths of the event files in a folder, in the order of their names. Errors: as FileSystem.
std::vector<std::string> event_files(FileSystem& files, const std::string& directory);

}  // namespace dflow
