#pragma once

#include <dflow/base/status.hpp>
#include <dflow/trace/events/event_file.hpp>
#include <dflow/trace/events/run_metadata.hpp>
#include <dflow/trace/events/tensorflow_graph.hpp>

#include <unistd.h>
#include <array>
#include <map>
#include <mutex>
#include <utility>

namespace dflow {

namespace detail {

inline constexpr std::string_view event_file_mark = "tfevents";  ///< by which TensorBoard knows a file

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
}

double seconds_since_1970(const Clock& clock) {
  return std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count();
}

}  // namespace detail

struct EventWriter::State {
  const std::shared_ptr<FileSystem> files;
  const std::string directory;
  const std::shared_ptr<const Clock> clock;
  const EventWriterOptions options;

  std::mutex mutex;  ///< guards what follows
  std::string path;
  std::unique_ptr<RecordWriter> writer;  ///< null before the first event
  std::vector<std::string> pending;      ///< events that are in no file yet
  std::size_t pending_bytes = 0;
  Clock::time_point flushed_at;
  std::map<std::string, int, std::less<>> run_metadata_tags;  ///< and the next number to try of each
  bool is_closed = false;
  Status failed;

  State(std::shared_ptr<FileSystem> file_system, std::string folder, std::shared_ptr<const Clock> time,
        EventWriterOptions writer_options)
      : files(std::move(file_system)),
        directory(std::move(folder)),
        clock(time != nullptr ? std::move(time) : std::make_shared<RealClock>()),
        options(std::move(writer_options)),
        flushed_at(clock->now()) {
    if (files == nullptr) throw_error(Status::invalid_argument("EventWriter: the file system is null"));
  }

  /// With the mutex held.
  void add(const Event& event) {
    if (is_closed) throw_error(Status::failed_precondition(str_cat("the event file '", path, "' has been closed")));
    throw_if_error(failed);
    pending.push_back(serialize(event));
    pending_bytes += pending.back().size();
    if (pending_bytes >= options.buffer_bytes || clock->now() - flushed_at >= options.flush_every) flush();
  }

  /// With the mutex held, and a tag that is new.
  void add_run_metadata(std::string tag, std::string run_metadata, std::int64_t step) {
    add(Event{detail::seconds_since_1970(*clock), step, TaggedRunMetadata{tag, std::move(run_metadata)}});
    run_metadata_tags.emplace(std::move(tag), 2);
  }

  void flush() {
    throw_if_error(failed);
    flushed_at = clock->now();
    if (pending.empty()) return;
    try {
      if (writer == nullptr || !files->exists(path)) open();
      for (const std::string& record : pending) writer->write(record);
      writer->flush();
    } catch (...) {
      failed = status_of_current_exception();
      throw;
    }
    pending.clear();
    pending_bytes = 0;
  }

  void open() {
    writer.reset();
    files->create_directories(directory);
    create_file();
    writer->write(serialize(Event{detail::seconds_since_1970(*clock), 0, EventFileVersion()}));
  }

  /// Under the first of its names that nobody has taken; another writer may look for one at the same time.
  void create_file() {
    constexpr int max_names = 1 << 20;
    constexpr std::size_t digits = 10;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock->wall_now().time_since_epoch());
    std::string number = str_cat(seconds.count());
    if (number.size() < digits) number.insert(0, digits - number.size(), '0');
    const std::string name = join_path(directory, str_cat("events.out.", detail::event_file_mark, ".", number, ".",
                                                          options.host.empty() ? detail::host_name() : options.host));
    for (int i = 0;; ++i) {
      path = i == 0 ? name + options.suffix : str_cat(name, ".", i, options.suffix);
      if (files->exists(path)) continue;
      try {
        writer = std::make_unique<RecordWriter>(*files, path, RecordWriterOptions{.is_new = true});
        return;
      } catch (const Error& error) {
        if (error.code() != Code::already_exists || i == max_names) throw;
      }
    }
  }
};

EventWriter::EventWriter(std::shared_ptr<FileSystem> files, std::string directory, std::shared_ptr<const Clock> clock,
                         EventWriterOptions options)
    : state_(std::make_unique<State>(std::move(files), std::move(directory), std::move(clock), std::move(options))) {}

EventWriter::EventWriter(FileSystem& files, std::string directory, const Clock& clock, EventWriterOptions options)
    : EventWriter(std::shared_ptr<FileSystem>(std::shared_ptr<void>(), &files), std::move(directory),
                  std::shared_ptr<const Clock>(std::shared_ptr<void>(), &clock), std::move(options)) {}

EventWriter::~EventWriter() {
  try {
    close();
  } catch (...) {  // who wants to know calls close
  }
}

void EventWriter::add(Event event) {
  if (event.wall_time == 0) event.wall_time = detail::seconds_since_1970(*state_->clock);
  std::lock_guard lock(state_->mutex);
  state_->add(event);
}

void EventWriter::add_summary(Summary summary, std::int64_t step) { add({0, step, std::move(summary)}); }

void EventWriter::add_summary(std::string_view serialized, std::int64_t step) {
  add_summary(parse_summary(serialized), step);
}

void EventWriter::add_summary_tensor(const Tensor<std::string>& serialized, std::int64_t step) {
  if (!serialized.is_initialized()) throw_error(Status::invalid_argument("a summary is one text, not an empty tensor"));
  if (serialized.rank() != 0) {
    throw_error(Status::invalid_argument(str_cat("a summary is one text, not string", serialized.shape().to_string())));
  }
  add_summary(std::string_view(*serialized.data()), step);
}

void EventWriter::add_scalar(std::string_view tag, double value, std::int64_t step) {
  add_summary(Summary{{scalar_summary(tag, value)}}, step);
}

void EventWriter::add_histogram(std::string_view tag, const AnyTensor& values, std::int64_t step) {
  add_summary(Summary{{histogram_summary(tag, values)}}, step);
}

void EventWriter::add_image(std::string_view tag, const AnyTensor& image, std::int64_t step, int max_images) {
  add_summary(Summary{image_summary(tag, image, max_images)}, step);
}

void EventWriter::add_audio(std::string_view tag, const AnyTensor& samples, std::int64_t sample_rate,
                            std::int64_t step) {
  add_summary(Summary{{audio_summary(tag, samples, sample_rate)}}, step);
}

void EventWriter::add_text(std::string_view tag, std::string_view text, std::int64_t step) {
  add_summary(Summary{{text_summary(tag, text)}}, step);
}

void EventWriter::add_graph(const Graph& graph, std::int64_t step) { add_graph(*graph.store(), step); }

void EventWriter::add_graph(const GraphStore& graph, std::int64_t step) {
  add({0, step, EventGraph{tensorflow_graph_def(graph)}});
}

void EventWriter::add_run_metadata(std::string_view tag, const StepStats& stats, std::int64_t step) {
  std::string run_metadata = tensorflow_run_metadata(stats);
  std::lock_guard lock(state_->mutex);
  if (state_->run_metadata_tags.contains(tag)) {
    throw_error(Status::already_exists(str_cat("there are statistics of a step under the tag '", tag, "'")));
  }
  state_->add_run_metadata(std::string(tag), std::move(run_metadata), step);
}

void EventWriter::add_more_run_metadata(std::string_view tag, const StepStats& stats, std::int64_t step) {
  std::string run_metadata = tensorflow_run_metadata(stats);
  std::lock_guard lock(state_->mutex);
  std::string unused(tag);
  if (const auto had = state_->run_metadata_tags.find(tag); had != state_->run_metadata_tags.end()) {
    do {
      unused = str_cat(tag, " (", had->second++, ")");
    } while (state_->run_metadata_tags.contains(unused));
  }
  state_->add_run_metadata(std::move(unused), std::move(run_metadata), step);
}

void EventWriter::add_hyperparameters(HyperparameterRun run) {
  if (run.start_time_secs == 0) run.start_time_secs = detail::seconds_since_1970(*state_->clock);
  add_summary(hyperparameters_summary(run), 0);
}

void EventWriter::add_hyperparameters_end(bool has_succeeded) {
  add_summary(hyperparameters_end_summary(has_succeeded, detail::seconds_since_1970(*state_->clock)), 0);
}

void EventWriter::add_start(std::int64_t step) { add({0, step, SessionLog{SessionLog::Status::start, {}, {}}}); }

void EventWriter::add_checkpoint(std::string_view path, std::int64_t step) {
  add({0, step, SessionLog{SessionLog::Status::checkpoint, std::string(path), {}}});
}

void EventWriter::add_stop(std::int64_t step) { add({0, step, SessionLog{SessionLog::Status::stop, {}, {}}}); }

void EventWriter::flush() {
  std::lock_guard lock(state_->mutex);
  if (!state_->is_closed) state_->flush();
}

void EventWriter::close() {
  std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->is_closed, true)) return;
  state_->flush();
  if (state_->writer != nullptr) state_->writer->close();
}

std::string EventWriter::path() const {
  std::lock_guard lock(state_->mutex);
  return state_->path;
}

EventReader::EventReader(FileSystem& files, std::string path, const RecordReaderOptions& options)
    : records_(files, std::move(path), options) {}

std::optional<Event> EventReader::next() {
  const std::uint64_t offset = records_.tell();
  if (!records_.next(record_)) return std::nullopt;
  try {
    return parse_event(record_);
  } catch (const Error& error) {
    records_.seek(offset);
    throw_error(error.status().with_prefix(str_cat("event of '", records_.path(), "' at offset ", offset, ": ")));
  }
}

std::vector<std::string> event_files(FileSystem& files, const std::string& directory) {
  std::vector<std::string> paths;
  for (const std::string& name : files.list_directory(directory)) {
    if (name.find(detail::event_file_mark) != std::string::npos) paths.push_back(join_path(directory, name));
  }
  return paths;
}

}  // namespace dflow
