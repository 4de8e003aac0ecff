#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/state/queue_state.hpp>
#include <dflow/state/readers/reader_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace dflow {

struct ReaderState::State : std::enable_shared_from_this<State> {
  struct Call {
    QueueState* queue = nullptr;
    std::int64_t count = 0;
    CancellationToken token;
    ReadDone done;
    Records records = {};  ///< so far
  };
  struct Answer {
    Status status;
    std::vector<QueuedElements> parts;
  };
  enum class Served : std::uint8_t {
    ended,
    waits,   ///< for the queue, whose answer goes on
    blocks,  ///< it must go on in a thread that may
  };

  State(std::string name_of_reader, const ReaderKind& kind_of_reader, std::shared_ptr<FileSystem> its_files)
      : name(std::move(name_of_reader)), kind(kind_of_reader), files(std::move(its_files)) {}

  const std::string name;
  const ReaderKind kind;
  const std::shared_ptr<FileSystem> files;

  mutable std::mutex mutex;
  ReaderProgress progress;
  std::uint64_t version = 0;  ///< how often `progress` was replaced
  detail::WaitList<Call> calls;
  bool is_busy = false;    ///< there is an active call
  bool is_asking = false;  ///< the queue is being asked: the asking thread takes an answer that is there at once
  std::optional<Answer> answer;
  std::optional<CancellationSource> waking;  ///< ends the wait for the queue

  // Used by the thread that serves the active call: one thread at a time.
  Call active;
  std::unique_ptr<WorkUnit> unit;  ///< of `unit_version`, and ahead of `progress` by the active call's records
  std::uint64_t unit_version = 0;
  std::uint64_t asked_version = 0;
  CancellationRegistration registration;
  ElasticPool threads{{.max_threads = 1, .name = "dflow-reader"}};

  /// Serves the active call and later calls. Stops before it would block, unless it may.
  void serve_calls(bool may_block) {
    const std::shared_ptr<State> kept = shared_from_this();  // the receiver of a call may let go of this
    for (;;) {
      Status status;
      Served served = Served::ended;
      try {
        served = serve(may_block);
        if (served == Served::waits) return;
        if (served == Served::blocks) return go_on_in_thread();
      } catch (...) {
        status = status_of_current_exception();
        unit = nullptr;  // opened again where `progress` is
      }
      if (!end_call(status)) return;
    }
  }

  void go_on_in_thread() {
    threads.schedule([kept = shared_from_this()]() mutable {
      const std::shared_ptr<State> mine = std::move(kept);
      mine->serve_calls(true);
    });
  }

  /// True if another call is active now.
  bool end_call(const Status& status) {
    Call ended = std::exchange(active, {});
    if (!status.ok()) ended.records = {};
    bool goes_on = false;
    {
      const std::lock_guard lock(mutex);
      goes_on = is_busy = !calls.is_empty();
      if (goes_on) active = calls.take_front();
    }
    ended.done(status, std::move(ended.records));
    return goes_on;
  }

  /// Errors: the error that the call ends with.
  Served serve(bool may_block) {
    while (active.count > 0) {
      throw_if_error(active.token.status());
      WorkPlace place;
      std::uint64_t version_now = 0;
      bool is_at_work = false;
      {
        const std::lock_guard lock(mutex);
        place = progress.place;
        version_now = version;
        is_at_work = progress.is_at_work();
      }
      const bool is_stale = unit_version != version_now;
      if (is_stale) unit = nullptr;
      if (is_stale && !active.records.keys.empty()) return Served::ended;
      if (!is_at_work) {
        if (!find_work()) return Served::waits;
        continue;
      }
      if (unit == nullptr) {
        if (!may_block && kind.format != ReaderFormat::identity) return Served::blocks;
        open(place, version_now);
        continue;
      }
      if (!read(may_block)) return Served::blocks;
      if (!active.records.keys.empty()) return Served::ended;
    }
    return Served::ended;
  }

  void open(const WorkPlace& place, std::uint64_t version_now) {
    std::string work;
    {
      const std::lock_guard lock(mutex);
      work = progress.work;
    }
    unit_version = version_now;
    try {
      unit = open_work(*files, kind, work);
      if (place != WorkPlace{}) unit->go_to(place);
    } catch (...) {
      pass_over_if_lost(status_of_current_exception());
      throw;
    }
  }

  /// A file that is missing, or may not be read, will not be readable the next time: other files are read then.
  void pass_over_if_lost(const Status& why) {
    const Code code = why.code();
    const bool is_lost = code == Code::not_found || code == Code::permission_denied ||
                         code == Code::failed_precondition || code == Code::invalid_argument;
    const std::lock_guard lock(mutex);
    if (!is_lost || version != unit_version) return;
    --progress.num_started;
    progress.place = {};
  }

  /// Reads the call's records of the unit, and notes them in `progress`; false if it would block and may not.
  bool read(bool may_block) {
    Records& records = active.records;
    WorkUnit::Next got = WorkUnit::Next::record;
    while (got == WorkUnit::Next::record && static_cast<std::int64_t>(records.keys.size()) < active.count &&
           !active.token.is_cancelled()) {
      if (!may_block && !unit->has_next_at_hand()) return false;
      std::string key, value;
      try {
        got = unit->next(key, value);
      } catch (...) {
        if (!records.keys.empty()) break;  // the next call meets it again
        pass_over_if_lost(status_of_current_exception());
        throw;
      }
      if (got == WorkUnit::Next::end) break;
      records.keys.push_back(std::move(key));
      records.values.push_back(std::move(value));
    }
    throw_if_error(active.token.status());
    const std::lock_guard lock(mutex);
    if (version != unit_version) return true;  // it was read before that
    progress.num_records += static_cast<std::int64_t>(records.keys.size());
    progress.place = unit->place();
    if (got == WorkUnit::Next::record) return true;
    progress.num_finished = progress.num_started;
    progress.place = {};
    unit = nullptr;
    return true;
  }

  // ---- work ----

  /// Begins the next unit; false if the queue will answer later.
  bool find_work() {
    {
      const std::lock_guard lock(mutex);
      if (!progress.next_works.empty()) {
        std::string work = std::move(progress.next_works.front());
        progress.next_works.erase(progress.next_works.begin());
        begin(std::move(work));
        return true;
      }
      throw_if_error(calls.ended());
      asked_version = version;
      answer.reset();
      waking.emplace();
      is_asking = true;
    }
    try {
      ask();
    } catch (...) {
      stop_asking();
      throw;
    }
    {
      const std::lock_guard lock(mutex);
      is_asking = false;
      if (!answer) return false;
    }
    take_answer();
    return true;
  }

  void ask() {
    CancellationSource source = *waking;
    if (active.token.can_be_cancelled()) {
      registration = active.token.on_cancel([source](const Status& why) mutable { source.cancel(why); });
    }
    active.queue->dequeue_async(1, false, source.token(),
                                [kept = shared_from_this()](Status status, std::vector<QueuedElements> parts) {
                                  {
                                    const std::lock_guard lock(kept->mutex);
                                    kept->answer = {std::move(status), std::move(parts)};
                                    if (kept->is_asking) return;
                                  }
                                  kept->go_on_with_answer();
                                });
  }

  void stop_asking() {
    static_cast<void>(registration.try_deregister());
    const std::lock_guard lock(mutex);
    is_asking = false;
    waking.reset();
  }

  void go_on_with_answer() {
    const std::shared_ptr<State> kept = shared_from_this();
    try {
      take_answer();
    } catch (...) {
      if (!end_call(status_of_current_exception())) return;
    }
    serve_calls(false);
  }

  /// Begins the unit that the queue gave. Errors: the errors of the queue, unless the reader has other work now.
  void take_answer() {
    stop_asking();
    Answer taken;
    bool was_woken = false;
    {
      const std::lock_guard lock(mutex);
      taken = std::move(*answer);
      answer.reset();
      was_woken = version != asked_version && calls.ended().ok();
    }
    if (!taken.status.ok() && was_woken && !active.token.is_cancelled()) return;
    throw_if_error(taken.status);
    const QueuedElements& element = taken.parts.at(0);
    const AnyTensor& component = element.components.at(0);
    if (element.element_shape(0).num_elements() != 1) {
      throw_error(
          Status::invalid_argument(str_cat("reader '", name, "' takes elements of one string out of its queue, not ",
                                           element.element_shape(0).to_string())));
    }
    std::string work = component.span<std::string>()[static_cast<std::size_t>(element.is_single ? 0 : element.begin)];
    const std::lock_guard lock(mutex);
    if (progress.is_at_work()) {
      progress.next_works.push_back(std::move(work));
    } else {
      begin(std::move(work));
    }
  }

  /// The lock is held.
  void begin(std::string work) {
    progress.work = std::move(work);
    progress.place = {};
    ++progress.num_started;
    unit = nullptr;
    unit_version = version;
  }

  // ---- waiting ----

  void give_up(Call& call, const Status& status) { call.done(status, {}); }

  void wake(const Status& why) {
    std::optional<CancellationSource> waiting;
    {
      const std::lock_guard lock(mutex);
      waiting = waking;
    }
    if (waiting) waiting->cancel(why);
  }
};

ReaderState::ReaderState(std::string name, ReaderKind kind, std::shared_ptr<FileSystem> files)
    : name_(std::move(name)), kind_(kind), state_(std::make_shared<State>(name_, kind_, std::move(files))) {}
ReaderState::~ReaderState() = default;

std::string ReaderState::debug_string() const {
  std::string text = str_cat(reader_format_name(kind_.format), " '", name_, "'");
  if (kind_.format == ReaderFormat::text_line) text += str_cat(" (skip_header_lines ", kind_.skip_header_lines, ")");
  const auto compression = [](RecordCompression of) { return attr_enum_names(of)[static_cast<std::size_t>(of)]; };
  if (kind_.format == ReaderFormat::tf_record && kind_.compression != RecordCompression::none) {
    text += str_cat(" (", compression(kind_.compression), ")");
  }
  if (kind_.format == ReaderFormat::fixed_length) {
    const FixedRecordFormat& fixed = kind_.fixed;
    text += str_cat(" (header ", fixed.header_bytes, ", record ", fixed.record_bytes, ", footer ", fixed.footer_bytes,
                    ", hop ", fixed.hop_bytes, " bytes", fixed.compression == RecordCompression::none ? "" : ", ",
                    compression(fixed.compression), ")");
  }
  return text;
}

void ReaderState::read_async(QueueState& queue, std::int64_t count, const CancellationToken& cancellation,
                             ReadDone done) {
  if (count < 0)
    return done(Status::invalid_argument(str_cat(debug_string(), ": cannot read ", count, " records")), {});
  if (queue.kind().dtypes != std::vector<DType>{DType::string}) {
    return done(Status::invalid_argument(
                    str_cat(debug_string(), " takes strings out of its queue; this is ", queue.debug_string())),
                {});
  }
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  std::unique_lock lock(kept->mutex);
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status(), {});
  }
  if (kept->is_busy) {
    const std::uint64_t id = kept->calls.add({&queue, count, cancellation, std::move(done)});
    return detail::wait_for(kept, &State::calls, lock, id, cancellation);
  }
  kept->is_busy = true;
  kept->active = {&queue, count, cancellation, std::move(done)};
  lock.unlock();
  kept->serve_calls(false);
}

ReaderProgress ReaderState::progress() const {
  const std::lock_guard lock(state_->mutex);
  return state_->progress;
}

void ReaderState::set_progress(ReaderProgress progress) {
  const bool has_work = progress.is_at_work() || !progress.next_works.empty();
  {
    const std::lock_guard lock(state_->mutex);
    std::swap(state_->progress, progress);
    ++state_->version;
  }
  if (has_work) state_->wake(Status::cancelled(str_cat("the state of reader '", name_, "' was replaced")));
}

void ReaderState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::calls, why);
  kept->wake(why);
}

std::vector<AnyTensor> ReaderState::saved_state() const {
  return {AnyTensor(Tensor<std::string>({1}, {serialized(progress(), kind_.format)}))};
}

void ReaderState::restore_state(std::span<const AnyTensor> state) {
  if (state.size() != 1 || state[0].dtype() != DType::string || state[0].num_elements() != 1) {
    throw_error(Status::invalid_argument(str_cat("the state of ", debug_string(), " is one string")));
  }
  try {
    set_progress(parse_reader_progress(state[0].span<std::string>()[0], kind_.format));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("could not parse the state for ", debug_string(), ": ")));
  }
}

// ---- the saved state ----

namespace detail {

enum ReaderField : std::uint32_t {
  reader_work_started = 1,
  reader_work_finished = 2,
  reader_num_records = 3,
  reader_work = 4,
  reader_offset = 5,
  reader_number = 6,
  reader_format = 7,
  reader_next_work = 8,
};

}  // namespace detail

std::string serialized(const ReaderProgress& progress, ReaderFormat format) {
  std::string text;
  ProtoWriter out(text);
  const auto number = [&](std::uint32_t field, std::uint64_t value) {
    if (value != 0) out.uint64(field, value);
  };
  number(detail::reader_work_started, static_cast<std::uint64_t>(progress.num_started));
  number(detail::reader_work_finished, static_cast<std::uint64_t>(progress.num_finished));
  number(detail::reader_num_records, static_cast<std::uint64_t>(progress.num_records));
  if (!progress.work.empty()) out.bytes(detail::reader_work, progress.work);
  number(detail::reader_offset, progress.place.offset);
  number(detail::reader_number, progress.place.number);
  if (format != ReaderFormat::identity) out.bytes(detail::reader_format, reader_format_name(format));
  for (const std::string& work : progress.next_works) out.bytes(detail::reader_next_work, work);
  return text;
}

ReaderProgress parse_reader_progress(std::string_view state, ReaderFormat format) {
  ReaderProgress progress;
  try {
    ProtoReader in(state);
    while (in.next()) {
      switch (in.number()) {
        case detail::reader_work_started:
          progress.num_started = in.int64();
          break;
        case detail::reader_work_finished:
          progress.num_finished = in.int64();
          break;
        case detail::reader_num_records:
          progress.num_records = in.int64();
          break;
        case detail::reader_work:
          progress.work = in.bytes();
          break;
        case detail::reader_offset:
          progress.place.offset = in.uint64();
          break;
        case detail::reader_number:
          progress.place.number = in.uint64();
          break;
        case detail::reader_format:
          if (const std::string_view of = in.bytes(); of != reader_format_name(format)) {
            throw_error(Status::invalid_argument("it is one of a reader of another kind"));
          }
          break;
        case detail::reader_next_work:
          progress.next_works.emplace_back(in.bytes());
          break;
        default:
          break;
      }
    }
  } catch (const Error& error) {
    throw_error(Status::invalid_argument(std::string(error.status().message())));
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  const auto is_count = [](std::int64_t n) { return n >= 0 && n <= std::int64_t{1} << 62; };
  if (!is_count(progress.num_finished) || !is_count(progress.num_started) || !is_count(progress.num_records) ||
      progress.num_started < progress.num_finished || progress.num_started - progress.num_finished > 1 ||
      progress.place.offset > most || progress.place.number > most) {
    throw_error(Status::invalid_argument("its numbers do not fit together"));
  }
  if (!progress.is_at_work()) progress.place = {};
  return progress;
}

}  // namespace dflow
