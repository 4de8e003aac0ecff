#include <dflow/trace/events/event_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using namespace dflow;
using namespace std::chrono_literals;

namespace {

const EventWriterOptions on_host{.host = "host", .suffix = {}};

std::vector<Event> read_events(FileSystem& files, const std::string& path) {
  EventReader reader(files, path);
  std::vector<Event> events;
  while (std::optional<Event> event = reader.next()) events.push_back(*std::move(event));
  return events;
}

// The first four records of an event file by TensorFlow 2: with tf.summary.create_file_writer(folder).as_default(),
// tf.summary.scalar("loss", 1 / (step + 1), step) for steps 0 to 2.
constexpr std::string_view tensorflow_2_scalars =
    "PgAAAAAAAADZ0kDnCQAAQH2/wtpBGg1icmFpbi5FdmVudDoyUiQKInRlbnNvcmZsb3cuY29yZS51dGlsLmV2ZW50c193cml0ZXIyIrgELAAAAAAA"
    "AAD0rsxFCefHW32/wtpBKiEKHwoEbG9zc0IKCAESACIEAACAP0oLCgkKB3NjYWxhcnPJ3FIELgAAAAAAAADFy1f6CQrYW32/wtpBEAEqIQofCgRs"
    "b3NzQgoIARIAIgQAAAA/SgsKCQoHc2NhbGFyc0fOEKguAAAAAAAAAMXLV/oJ7N1bfb/C2kEQAiohCh8KBGxvc3NCCggBEgAiBKuqqj5KCwoJCgdz"
    "Y2FsYXJzaECuPA==";

/// "tag@step" of all scalars, in order.
std::string scalars(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) {
    const auto* summary = std::get_if<Summary>(&event.content);
    if (summary == nullptr) continue;
    for (const SummaryValue& value : summary->values) text += str_cat(value.tag, "@", event.step, " ");
  }
  return text;
}

}  // namespace

TEST_CASE("an event file has TensorFlow's name, and its first event says the version", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock(123456789s + 250ms);
  EventWriter writer(files, "/logs/run", clock, on_host);
  CHECK(writer.path().empty());
  CHECK_FALSE(files.exists("/logs"));
  writer.add_scalar("loss", 0.5, 7);
  writer.flush();
  CHECK(writer.path() == "/logs/run/events.out.tfevents.0123456789.host");
  const std::vector<Event> events = read_events(files, writer.path());
  REQUIRE(events.size() == 2);
  CHECK(std::get<EventFileVersion>(events[0].content).text == "brain.Event:2");
  CHECK(events[0].wall_time == 123456789.25);
  CHECK(events[1].step == 7);
  CHECK(events[1].wall_time == 123456789.25);
  CHECK(std::get<float>(std::get<Summary>(events[1].content).values[0].value) == 0.5f);
}

TEST_CASE("the scalars in an event file of TensorFlow 2 are read", "[event_file]") {
  MemoryFileSystem files;
  files.write_file_atomically("/events", std::string_view(*from_base64(tensorflow_2_scalars)));
  const std::vector<Event> events = read_events(files, "/events");
  REQUIRE(events.size() == 4);
  const std::vector<float> losses{1.0f, 0.5f, 1.0f / 3};
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(events[step + 1].step == static_cast<std::int64_t>(step));
    const SummaryValue& value = std::get<Summary>(events[step + 1].content).values.at(0);
    CHECK(value.tag == "loss");
    REQUIRE(std::holds_alternative<float>(value.value));
    CHECK(std::get<float>(value.value) == losses[step]);
  }
}

TEST_CASE("a machine has a name", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock(5s);
  EventWriter writer(files, "/", clock, {.host = {}, .suffix = ".v2"});
  writer.add_scalar("a", 1, 1);
  writer.close();
  CHECK(writer.path().starts_with("/events.out.tfevents.0000000005."));
  CHECK(writer.path().ends_with(".v2"));
  CHECK(event_files(files, "/") == std::vector<std::string>{writer.path()});
}

TEST_CASE("each kind of event is read as it was added", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter writer(files, "/logs", clock, on_host);
  writer.add_start(3);
  writer.add_graph(Graph());
  writer.add_histogram("w", Tensor<float>({2}, {1, 2}), 3);
  writer.add_image("img", Tensor<std::uint8_t>({2, 1, 1, 1}, {1, 2}), 3);
  writer.add_audio("sound", Tensor<float>({2}, {0, 1}), 8000, 3);
  writer.add_text("text", "hello", 3);
  writer.add_run_metadata("step 3", StepStats(), 3);
  writer.add_summary(serialize(Summary{{scalar_summary("raw", 2)}}), 4);
  writer.add_hyperparameters({.values = {{"lr", 0.1}}, .metrics = {"loss"}, .group = {}});
  writer.add_checkpoint("/model-4", 4);
  writer.add_hyperparameters_end(true);
  writer.add_stop(5);
  writer.close();
  const std::vector<Event> events = read_events(files, writer.path());
  REQUIRE(events.size() == 13);
  CHECK(std::get<SessionLog>(events[1].content).status == SessionLog::Status::start);
  CHECK(events[1].step == 3);
  CHECK_FALSE(std::get<EventGraph>(events[2].content).graph_def.empty());
  CHECK(scalars(events) ==
        "w@3 img/image/0@3 img/image/1@3 sound@3 text@3 raw@4 _hparams_/experiment@0 _hparams_/session_start_info@0 "
        "_hparams_/session_end_info@0 ");
  CHECK(std::get<TaggedRunMetadata>(events[7].content).tag == "step 3");
  CHECK(std::get<SessionLog>(events[10].content).checkpoint_path == "/model-4");
  CHECK(std::get<SessionLog>(events[12].content).status == SessionLog::Status::stop);
}

TEST_CASE("what cannot be recorded is an error and writes nothing", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter writer(files, "/logs", clock, on_host);
  const auto nothing_of = [](auto f) {
    return [f] {
      f();
      return true;
    };
  };
  CHECK(code_of(nothing_of([&] {
          writer.add_histogram("w", Tensor<float>(std::numeric_limits<float>::quiet_NaN()), 1);
        })) == Code::invalid_argument);
  CHECK(code_of(nothing_of([&] { writer.add_image("i", Tensor<float>(1.0f), 1); })) == Code::invalid_argument);
  CHECK(code_of(nothing_of([&] { writer.add_summary("\x0a\x05", 1); })) == Code::data_loss);
  writer.add_run_metadata("tag", StepStats(), 1);
  CHECK(code_of(nothing_of([&] { writer.add_run_metadata("tag", StepStats(), 2); })) == Code::already_exists);
  writer.close();
  CHECK(read_events(files, writer.path()).size() == 2);
}

TEST_CASE("events are written when they are many, when time has passed, or when that is asked for", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriterOptions options = on_host;
  options.buffer_bytes = 1000;
  options.flush_every = 10s;
  EventWriter writer(files, "/logs", clock, options);
  const auto written = [&] { return writer.path().empty() ? 0 : read_events(files, writer.path()).size(); };
  writer.add_scalar("a", 1, 1);
  CHECK(written() == 0);
  clock.advance(10s);
  CHECK(written() == 0);
  writer.add_scalar("a", 1, 2);
  CHECK(written() == 3);
  writer.add_scalar("a", 1, 3);
  CHECK(written() == 3);
  writer.flush();
  CHECK(written() == 4);
  writer.add_text("t", std::string(1000, 'x'), 4);
  CHECK(written() == 5);
}

TEST_CASE("after its file was deleted a writer goes on in a new one, without losing what it holds", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock(1000s);
  EventWriter writer(files, "/logs", clock, on_host);
  writer.add_scalar("before", 1, 1);
  writer.flush();
  writer.add_scalar("held", 2, 2);
  files.remove(writer.path());
  files.remove("/logs");
  clock.advance(5s);
  writer.add_scalar("after", 3, 3);
  writer.close();
  CHECK(writer.path() == "/logs/events.out.tfevents.0000001005.host");
  CHECK(event_files(files, "/logs").size() == 1);
  const std::vector<Event> events = read_events(files, writer.path());
  CHECK(std::holds_alternative<EventFileVersion>(events[0].content));
  CHECK(scalars(events) == "held@2 after@3 ");
}

TEST_CASE("two writers of one second have two files", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter first(files, "/logs", clock, on_host), second(files, "/logs", clock, on_host);
  first.add_scalar("first", 1, 1);
  first.close();
  second.add_scalar("second", 1, 1);
  second.close();
  CHECK(first.path() != second.path());
  CHECK(scalars(read_events(files, first.path())) == "first@1 ");
  CHECK(scalars(read_events(files, second.path())) == "second@1 ");
  CHECK(event_files(files, "/logs").size() == 2);
}

TEST_CASE("a writer that finds a name unused while another takes it writes under another name", "[event_file]") {
  class Overtaken final : public testing::ChangedFiles {
   public:
    bool exists(const std::string& path) override {
      const bool exists = files.exists(path);
      if (std::exchange(is_overtaken, false)) overtake();
      return exists;
    }
    bool is_overtaken = true;
    std::function<void()> overtake;
  } files;
  VirtualClock clock;
  EventWriter first(files, "/logs", clock, on_host), second(files, "/logs", clock, on_host);
  files.overtake = [&] { second.flush(); };
  first.add_scalar("first", 1, 1);
  second.add_scalar("second", 1, 1);
  first.flush();
  CHECK(second.path() == "/logs/events.out.tfevents.1700000000.host");
  CHECK(first.path() == "/logs/events.out.tfevents.1700000000.host.1");
  CHECK(scalars(read_events(files, first.path())) == "first@1 ");
  CHECK(scalars(read_events(files, second.path())) == "second@1 ");
}

TEST_CASE("writers of many threads that begin in one second have a file each", "[event_file]") {
  PosixFileSystem files;
  const testing::TemporaryFolder folder;
  VirtualClock clock;
  constexpr int num_threads = 4, num_writers = 25;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < num_threads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < num_writers; ++i) {
        EventWriter writer(files, folder.path(), clock, on_host);
        writer.add_scalar(str_cat("w", thread * num_writers + i), 1, 1);
        writer.close();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> paths = event_files(files, folder.path());
  CHECK(paths.size() == num_threads * num_writers);
  for (const std::string& path : paths) {
    const std::vector<Event> events = read_events(files, path);
    CHECK(events.size() == 2);
    CHECK(std::holds_alternative<EventFileVersion>(events[0].content));
  }
}

TEST_CASE("a writer that is closed takes no more, one without events leaves nothing", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  {
    EventWriter writer(files, "/logs", clock, on_host);
    writer.close();
    writer.close();
    writer.flush();
    CHECK(code_of([&] {
            writer.add_scalar("late", 1, 1);
            return true;
          }) == Code::failed_precondition);
  }
  CHECK_FALSE(files.exists("/logs"));
}

TEST_CASE("a full disk is said, and said again", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter writer(files, "/logs", clock, on_host);
  writer.add_scalar("a", 1, 1);
  files.fail_change(3, Status::resource_exhausted("disk full"));
  const auto flush = [&] {
    writer.flush();
    return true;
  };
  CHECK(code_of(flush) == Code::resource_exhausted);
  CHECK(code_of(flush) == Code::resource_exhausted);
  CHECK(code_of([&] {
          writer.add_scalar("b", 1, 1);
          return true;
        }) == Code::resource_exhausted);
}

TEST_CASE("threads may add at the same time", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriterOptions options = on_host;
  options.buffer_bytes = 300;
  EventWriter writer(files, "/logs", clock, options);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int step = 0; step < 100; ++step) writer.add_scalar(str_cat("thread", thread), step, step);
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close();
  std::vector<std::int64_t> next(4, 0);
  std::vector<Event> events = read_events(files, writer.path());
  CHECK(events.size() == 401);
  for (const Event& event : events) {
    const auto* summary = std::get_if<Summary>(&event.content);
    if (summary == nullptr) continue;
    const auto thread = static_cast<std::size_t>(summary->values[0].tag.back() - '0');
    CHECK(event.step == next[thread]++);
  }
}

TEST_CASE("an event file is followed while it is written, and damage names path and offset", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter writer(files, "/logs", clock, on_host);
  writer.add_scalar("a", 1, 1);
  writer.flush();
  EventReader reader(files, writer.path());
  CHECK(reader.next().has_value());
  const std::uint64_t second = reader.tell();
  CHECK(reader.next().has_value());
  CHECK_FALSE(reader.next().has_value());
  writer.add_scalar("b", 1, 2);
  writer.flush();
  CHECK(reader.next()->step == 2);
  reader.seek(second);
  CHECK(reader.next()->step == 1);

  RecordWriter records(files, "/bad");
  records.write("\x0a\x05");
  records.close();
  EventReader bad(files, "/bad");
  for (int i = 0; i < 2; ++i) {
    const Status status = status_of([&] { return bad.next(); });
    CHECK(status.code() == Code::data_loss);
    CHECK(mentions(status, "'/bad' at offset 0"));
  }
}

TEST_CASE("the bytes of a summary op are written, and nothing of damaged ones", "[event_file]") {
  MemoryFileSystem files;
  VirtualClock clock;
  EventWriter writer(files, "/logs", clock, on_host);
  const std::string bytes = serialize(Summary{{scalar_summary("a", 1)}});
  writer.add_summary(Tensor<std::string>(bytes), 1);
  writer.add_summary(Tensor<std::string>(std::string()), 2);
  CHECK(code_of([&] { writer.add_summary(Tensor<std::string>({1}, {bytes}), 3); }) == Code::invalid_argument);
  CHECK(code_of([&] { writer.add_summary(Tensor<std::string>(bytes.substr(1)), 3); }) == Code::data_loss);
  CHECK(code_of([&] { writer.add_summary(std::string_view(bytes).substr(0, 5), 3); }) == Code::data_loss);
  writer.add_summary(bytes, 4);
  writer.close();
  CHECK(scalars(read_events(files, writer.path())) == "a@1 a@4 ");
}

TEST_CASE("statistics under one tag over and over get the first numbers that are free") {
  MemoryFileSystem files;
  VirtualClock clock(1s);
  std::string path;
  {
    EventWriter writer(files, "/events", clock, on_host);
    writer.add_run_metadata("step (3)", {}, 1);
    for (int i = 0; i < 5; ++i) writer.add_more_run_metadata("step", {}, i);
    for (int i = 0; i < 2; ++i) writer.add_more_run_metadata("step (2)", {}, i);
    CHECK(code_of([&] { return writer.add_run_metadata("step (4)", {}, 9), 0; }) == Code::already_exists);
    writer.flush();
    path = writer.path();
  }
  std::string tags;
  for (const Event& event : read_events(files, path)) {
    if (const auto* run = std::get_if<TaggedRunMetadata>(&event.content)) tags += run->tag + ", ";
  }
  CHECK(tags == "step (3), step, step (2), step (4), step (5), step (6), step (2) (2), step (2) (3), ");
}
