#include <dflow/train/replicas/supervisor.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/summary/summary.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/trace/events/event_file.hpp>

#include <signal.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

/// A step that counts, on a device with files in memory; options of a supervisor that saves there.
struct CountedTraining {
  explicit CountedTraining(std::shared_ptr<df::MemoryFileSystem> seen) : files(std::move(seen)) {
    df::set_device_files(device->context(), files);
  }

  df::train::SupervisorOptions options() {
    return {.session = {.devices = {device}},
            .checkpoint_dir = "/d",
            .saver_options = {.files = files, .clock = clock},
            .global_step = step,
            .on_save_error = [this](const df::Status& status) { errors.push_back(status); },
            .clock = clock};
  }
  void train(df::train::Supervisor& supervisor, int count = 1) {
    for (int i = 0; i < count; ++i) supervisor.run([&](df::Session& session) { session.run(bump); });
  }
  std::int64_t latest() const {
    const std::optional<std::string> path = df::train::latest_checkpoint(*files, "/d");
    return path ? df::CheckpointReader(*files, *path).read("global_step").span<std::int64_t>()[0] : -1;
  }

  std::shared_ptr<df::MemoryFileSystem> files;
  std::shared_ptr<df::VirtualClock> clock = std::make_shared<df::VirtualClock>();
  std::shared_ptr<df::Device> device =
      std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{.pool = std::make_shared<df::InlinePool>()});
  df::Graph graph;
  df::Variable<std::int64_t> step{graph, 0, {.name = "global_step", .trainable = false}};
  df::Operation bump = step.assign_add(1);
  std::vector<df::Status> errors;
};

}  // namespace

TEST_CASE("a supervisor saves every so many steps, and another one begins where it has saved last") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  {
    CountedTraining training(files);
    df::train::SupervisorOptions options = training.options();
    options.save_every_steps = 3;
    df::train::Supervisor supervisor(training.graph, options);
    training.train(supervisor, 2);
    CHECK(training.latest() == 0);  // made before the first step
    training.train(supervisor, 6);
    CHECK(training.latest() == 6);
    CHECK(supervisor.save() == "/d/model-8");
    CHECK(training.latest() == 8);
  }
  CountedTraining training(files);
  df::train::SupervisorOptions options = training.options();
  options.save_every_steps = 3;
  df::train::Supervisor supervisor(training.graph, options);
  CHECK(supervisor.session().run(training.step).scalar() == 8);
  training.train(supervisor, 2);
  CHECK(training.latest() == 8);
  training.train(supervisor, 1);
  CHECK(training.latest() == 11);
}

TEST_CASE("a supervisor saves when the time has come") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  options.save_every = std::chrono::minutes(10);
  df::train::Supervisor supervisor(training.graph, options);
  training.train(supervisor, 3);
  CHECK(training.latest() == 0);
  training.clock->advance(std::chrono::minutes(10));
  training.train(supervisor, 2);
  CHECK(training.latest() == 4);
  training.clock->advance(std::chrono::minutes(9));
  training.train(supervisor, 1);
  CHECK(training.latest() == 4);
  training.clock->advance(std::chrono::minutes(1));
  CHECK(supervisor.run([&](df::Session& session) { return session.run(training.step).scalar(); }) == 6);
  CHECK(training.latest() == 6);
}

TEST_CASE("a supervisor reports a full disk, and training goes on") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  options.save_every_steps = 1;
  df::train::Supervisor supervisor(training.graph, options);
  training.train(supervisor, 1);
  training.files->fail_change(3, df::Status::resource_exhausted("the disk is full"), true);
  training.train(supervisor, 2);
  training.files->fail_change(0, df::Status());
  REQUIRE(training.errors.size() == 2);
  for (const df::Status& status : training.errors) {
    CHECK(status.code() == df::Code::resource_exhausted);
    CHECK(mentions(status, "the disk is full"));
  }
  CHECK(training.latest() == 1);
  CHECK(supervisor.num_recoveries() == 0);
  training.train(supervisor, 1);
  CHECK(training.latest() == 4);
}

TEST_CASE("a supervisor saves no variables that are not finite, unless it is to") {
  for (const bool only_finite : {true, false}) {
    CountedTraining training(std::make_shared<df::MemoryFileSystem>());
    const df::Variable<float> weight(training.graph, 1.0f, {.name = "weight"});
    const auto spoil = weight.assign(df::constant(training.graph, std::numeric_limits<float>::quiet_NaN()));
    const auto mend = weight.assign(df::constant(training.graph, 2.0f));
    df::train::SupervisorOptions options = training.options();
    options.save_every_steps = 1;
    options.only_finite = only_finite;
    df::train::Supervisor supervisor(training.graph, options);
    training.train(supervisor);
    CHECK(training.latest() == 1);
    supervisor.run([&](df::Session& session) { session.run(training.bump, spoil); });
    training.train(supervisor);
    CHECK(training.latest() == (only_finite ? 1 : 3));
    CHECK(training.errors.size() == (only_finite ? 2 : 0));
    const df::Status saved = status_of([&] { supervisor.save(); });
    CHECK(saved.ok() == !only_finite);
    if (!only_finite) continue;
    CHECK(saved.code() == df::Code::invalid_argument);
    CHECK(mentions(saved, "not saved at step 3; the variable 'weight' is not finite (SupervisorOptions::only_finite)"));
    supervisor.run([&](df::Session& session) { session.run(training.bump, mend); });
    CHECK(training.latest() == 4);
  }
}

TEST_CASE("a body that throws something of its own is not called again, and nothing is saved after it") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  options.save_every_steps = 1;
  df::train::Supervisor supervisor(training.graph, options);
  int calls = 0;
  CHECK(code_of([&] {
          supervisor.run([&](df::Session&) {
            ++calls;
            df::throw_error(df::Status::out_of_range("no more data"));
          });
        }) == df::Code::out_of_range);
  CHECK(calls == 1);
  CHECK(training.latest() == 0);
}

TEST_CASE("a chief that is started anew before its first step is saved begins again, whatever was left half done") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  CountedTraining training(files);
  df::train::SupervisorOptions options = training.options();
  options.save_every_steps = 100;
  for (int round = 0; round < 3; ++round) {
    df::train::Supervisor chief(training.graph, options);
    CHECK(chief.session().run(training.step).scalar() == 0);
    training.train(chief, 5);
  }
}

TEST_CASE("what a lead that has failed left half done is undone by the last checkpoint") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  int leads = 0;
  options.lead = [&](const df::train::Leading& with) {
    if (++leads > 1) return;
    with.session.run(training.bump);
    with.save();
    with.session.run(training.bump);  // the variables keep their values when the session goes
    df::throw_error(df::Status::unavailable("a task that only the lead uses is gone"));
  };
  df::train::Supervisor supervisor(training.graph, options);
  CHECK(supervisor.wait_for_lead());
  CHECK(leads == 2);
  CHECK(supervisor.run([&](df::Session& session) { return session.run(training.step).scalar(); }) == 1);
  CHECK(training.latest() == 1);
}

TEST_CASE("what is new is saved once, and by the chief alone") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  int leads = 0;
  options.lead = [&](const df::train::Leading& with) {
    ++leads;
    with.session.run(training.bump);
    with.save();
  };
  df::train::Supervisor supervisor(training.graph, options);
  CHECK(supervisor.wait_for_lead());
  CHECK(leads == 1);
  CHECK(training.latest() == 1);
  const auto save = [&] { supervisor.run([&](df::Session& session) { supervisor.save_what_is_new(session); }); };
  training.files->fail_change(1, df::Status::resource_exhausted("the disk is full"), true);
  save();  // there is nothing
  CHECK(training.errors.empty());
  training.train(supervisor, 1);
  save();
  REQUIRE(training.errors.size() == 1);
  CHECK(mentions(training.errors[0], "the disk is full"));
  training.files->fail_change(0, df::Status());
  save();
  CHECK(training.latest() == 2);
  CHECK(training.errors.size() == 1);
  options.is_chief = false;
  df::train::Supervisor other(training.graph, options);
  training.train(other, 1);
  other.run([&](df::Session& session) { other.save_what_is_new(session); });
  CHECK(training.latest() == 2);
}

TEST_CASE("a stop and SIGTERM end a chief that waits for what it leads, and what that has made is saved") {
  for (const bool is_signal : {false, true}) {
    CountedTraining training(std::make_shared<df::MemoryFileSystem>());
    df::train::SupervisorOptions options = training.options();
    std::stop_source stop;
    options.stop = stop.get_token();
    options.save_on_sigterm = is_signal;
    options.lead = [&](const df::train::Leading& with) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      if (is_signal) {
        ::raise(SIGTERM);
      } else {
        stop.request_stop();
      }
      never.wait_for(lock, with.stop, std::chrono::seconds(20), [] { return false; });
      if (with.stop.stop_requested()) with.session.run(training.bump);  // the step that it makes
    };
    df::train::Supervisor supervisor(training.graph, options);
    for (int round = 0; round < 2; ++round) CHECK_FALSE(supervisor.wait_for_lead());
    CHECK(supervisor.should_stop());
    CHECK(training.latest() == 1);
    CHECK(training.errors.empty());
  }
}

TEST_CASE("after SIGTERM the body that runs is the last, and what it has trained is saved") {
  struct sigaction ignore {
  }, before{}, now{};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGTERM, &ignore, &before) == 0);
  for (int round = 0; round < 3; ++round) {
    CountedTraining training(std::make_shared<df::MemoryFileSystem>());
    df::train::SupervisorOptions options = training.options();
    options.save_on_sigterm = true;
    {
      df::train::Supervisor supervisor(training.graph, options);
      int bodies = 0;
      while (!supervisor.should_stop()) {
        supervisor.run([&](df::Session& session) {
          session.run(training.bump);
          if (++bodies == 5) ::raise(SIGTERM);
        });
      }
      CHECK(bodies == 5);
      CHECK(training.latest() == 5);
      training.train(supervisor, 1);  // it has been saved for the last time
      CHECK(training.latest() == 5);
      df::train::Supervisor late(training.graph, {.save_on_sigterm = true});
      CHECK(!late.should_stop());
    }
    REQUIRE(::sigaction(SIGTERM, nullptr, &now) == 0);
    CHECK(now.sa_handler == SIG_IGN);
  }
  // Without the option nothing is installed.
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::Supervisor supervisor(training.graph, training.options());
  REQUIRE(::sigaction(SIGTERM, nullptr, &now) == 0);
  CHECK(now.sa_handler == SIG_IGN);
  CHECK(!supervisor.should_stop());
  ::sigaction(SIGTERM, &before, nullptr);
}

TEST_CASE("a stop between two bodies saves what the last one has trained, and one in a body what that one has") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  std::stop_source stop;
  df::train::SupervisorOptions options = training.options();
  options.stop = stop.get_token();
  {
    df::train::Supervisor supervisor(training.graph, options);
    training.train(supervisor, 3);
    CHECK(!supervisor.should_stop());
    CHECK(training.latest() == 0);
    stop.request_stop();
    CHECK(supervisor.should_stop());
    CHECK(training.latest() == 3);
  }
  std::stop_source later;
  options.stop = later.get_token();
  df::train::Supervisor supervisor(training.graph, options);
  training.train(supervisor, 1);
  supervisor.run([&](df::Session& session) {
    later.request_stop();
    CHECK(supervisor.should_stop());
    CHECK(training.latest() == 3);  // in the middle of a body nothing is saved
    session.run(training.bump);
  });
  CHECK(training.latest() == 5);
  CHECK(supervisor.should_stop());
}

TEST_CASE("a checkpoint that does not fit is an error at the line that made the supervisor") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  {
    df::train::Supervisor supervisor(training.graph, training.options());
    training.train(supervisor);
    supervisor.save();
  }
  df::Variable<float> added(training.graph, 0.0f, {.name = "added"});
  const auto line = std::source_location::current().line() + 1;
  df::train::Supervisor supervisor(training.graph, training.options());
  const df::Status status = status_of([&] { supervisor.session(); });
  CHECK(status.code() == df::Code::not_found);
  CHECK(mentions(status, "'added'"));
  CHECK(std::string(status.where().file_name()) == __FILE__);
  CHECK(status.where().line() == line);
}

TEST_CASE("SIGTERM ends the wait for a model that is not ready") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  struct sigaction before {};
  REQUIRE(::sigaction(SIGTERM, nullptr, &before) == 0);
  df::train::Supervisor supervisor(
      training.graph, {.session = {.devices = {training.device}}, .is_chief = false, .save_on_sigterm = true});
  ::raise(SIGTERM);
  CHECK(code_of([&] { supervisor.session(); }) == df::Code::cancelled);
}

TEST_CASE("what a supervisor that saves is given is checked") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::SupervisorOptions options = training.options();
  options.global_step.reset();
  CHECK(code_of([&] { df::train::Supervisor supervisor(training.graph, options); }) == df::Code::invalid_argument);
  options = training.options();
  options.save_every_steps = -1;
  CHECK(code_of([&] { df::train::Supervisor supervisor(training.graph, options); }) == df::Code::invalid_argument);
  df::train::Supervisor without(training.graph, {.session = {.devices = {training.device}}});
  CHECK(code_of([&] { without.save(); }) == df::Code::failed_precondition);
  options = training.options();
  options.is_chief = false;
  df::train::Supervisor worker(training.graph, options);
  CHECK(code_of([&] { worker.save(); }) == df::Code::failed_precondition);
}

TEST_CASE("a checkpoint that is damaged is named, not passed over") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  {
    CountedTraining training(files);
    df::train::Supervisor supervisor(training.graph, training.options());
    training.train(supervisor, 1);
    supervisor.save();
  }
  files->write_file_atomically("/d/model-1.index", "?");
  CountedTraining training(files);
  df::train::Supervisor supervisor(training.graph, training.options());
  const df::Status status = status_of([&] { return supervisor.session().run(training.step); });
  CHECK(status.code() == df::Code::data_loss);
  CHECK(mentions(status, "/d/model-1.index"));
}

TEST_CASE("where checkpoints are named and none is there training does not begin anew without a word") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  {
    CountedTraining training(files);
    df::train::Supervisor supervisor(training.graph, training.options());
    training.train(supervisor, 2);
    supervisor.save();
  }
  for (const std::string& file : files->list_directory("/d")) {
    if (file != "checkpoint") files->remove("/d/" + file);
  }
  {
    CountedTraining training(files);
    df::train::Supervisor supervisor(training.graph, training.options());
    const df::Status status = status_of([&] { supervisor.session(); });
    CHECK(status.code() == df::Code::not_found);
    CHECK(mentions(status, "'/d/checkpoint' names 'model-2'"));
  }
  files->remove("/d/checkpoint");
  CountedTraining training(files);
  df::train::Supervisor supervisor(training.graph, training.options());
  CHECK_NOTHROW(supervisor.session());
}

TEST_CASE("a checkpoint that was written where the saver does not see it is no checkpoint") {
  const auto here = std::make_shared<df::MemoryFileSystem>(), there = std::make_shared<df::MemoryFileSystem>();
  CountedTraining training(here);
  df::set_device_files(training.device->context(), there);
  df::train::Supervisor supervisor(training.graph, training.options());
  const df::Status status = status_of([&] { supervisor.session(); });
  CHECK(status.code() == df::Code::not_found);
  CHECK(mentions(status, "do not see one file system"));
  CHECK_FALSE(df::train::latest_checkpoint(*here, "/d").has_value());
  CHECK_FALSE(here->exists("/d/checkpoint"));
}

TEST_CASE("training does not begin without a first checkpoint, and does as soon as it can be saved") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::train::Supervisor supervisor(training.graph, training.options());
  for (const df::Status& error :
       {df::Status::resource_exhausted("the disk is full"), df::Status::unavailable("the disk is full")}) {
    training.files->fail_change(1, error, true);
    const df::Status status = status_of([&] { training.train(supervisor, 1); });  // at once, and no task is lost
    CHECK(status.code() == error.code());
    CHECK(mentions(status, "the disk is full"));
  }
  training.files->fail_change(0, df::Status());
  training.train(supervisor, 1);
  CHECK(training.latest() == 0);
  CHECK(supervisor.session().run(training.step).scalar() == 1);
  CHECK(training.errors.empty());
}

TEST_CASE("a supervisor says what the model has begun with, and who throws at it changes nothing") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  std::vector<std::string> lines;
  const auto begin = [&](const std::function<void(std::string_view)>& log) {
    CountedTraining training(files);
    df::train::SupervisorOptions options = training.options();
    options.log = log;
    df::train::Supervisor supervisor(training.graph, options);
    training.train(supervisor, 2);
    supervisor.save();
  };
  const auto note = [&](std::string_view line) { lines.emplace_back(line); };
  begin(note);
  begin(note);
  CHECK(lines ==
        std::vector<std::string>{"the variables are initialised", "the variables are restored from '/d/model-2'"});
  begin([](std::string_view) { throw std::string("not an error of ours"); });
  CHECK(lines.size() == 2);
}

TEST_CASE("what comes again and again is said now and then") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  std::vector<std::string> lines;
  df::train::SupervisorOptions options = training.options();
  options.log = [&](std::string_view line) { lines.emplace_back(line); };
  df::train::Supervisor supervisor(training.graph, options);
  for (int round = 1; round <= 3; ++round) {
    int num_calls = 0;
    supervisor.run([&](df::Session&) {
      if (++num_calls < 100) df::throw_error(df::Status::unavailable("the data service is down"));
    });
    CHECK(supervisor.num_recoveries() == 99 * round);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("the data service is down") != std::string::npos;
          }) == round);
    training.clock->advance(std::chrono::seconds(11));
  }
  // Many errors that differ are not all logged either.
  const std::size_t before = lines.size();
  int number = 0;
  supervisor.run([&](df::Session&) {
    if (++number < 1000) df::throw_error(df::Status::unavailable("service " + std::to_string(number) + " is down"));
  });
  CHECK(lines.size() - before <= 16);
}

namespace {

/// Each event of a file in short: "step:content".
std::vector<std::string> events_in_short(df::FileSystem& files, const std::string& path) {
  std::vector<std::string> all;
  df::EventReader reader(files, path);
  while (const std::optional<df::Event> event = reader.next()) {
    std::string what;
    if (std::holds_alternative<df::EventGraph>(event->content)) what = "graph";
    if (const auto* log = std::get_if<df::SessionLog>(&event->content)) {
      what = log->status == df::SessionLog::Status::start ? "start" : log->checkpoint_path;
    }
    if (const auto* summary = std::get_if<df::Summary>(&event->content)) {
      for (const df::SummaryValue& value : summary->values) {
        what += df::str_cat(value.tag, "=", static_cast<int>(std::get<float>(value.value)));
      }
    }
    if (!what.empty()) all.push_back(df::str_cat(event->step, ":", what));
  }
  return all;
}

}  // namespace

TEST_CASE("a supervisor writes summaries every so many steps, its graph, beginnings and checkpoints") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  std::string first, second;
  for (std::string* path : {&first, &second}) {
    CountedTraining training(files);
    df::scalar_summary("step", training.step);
    df::EventWriter events(*files, "/events", *training.clock, {.host = "host", .suffix = {}});
    df::train::SupervisorOptions options = training.options();
    options.events = &events;
    options.summary_every_steps = 2;
    options.save_every_steps = 3;
    {
      df::train::Supervisor supervisor(training.graph, options);
      supervisor.session();
      for (int i = 0; i < 5; ++i) {
        training.clock->advance(std::chrono::milliseconds(100));
        training.train(supervisor);
      }
    }
    events.close();
    *path = events.path();
  }
  CHECK(events_in_short(*files, first) == std::vector<std::string>{"0:/d/model-0", "1:start", "0:graph",
                                                                   "2:global_step/sec=10", "2:step=2", "3:/d/model-3",
                                                                   "4:global_step/sec=10", "4:step=4"});
  CHECK(events_in_short(*files, second) == std::vector<std::string>{"4:start", "3:graph", "5:global_step/sec=10",
                                                                    "5:step=5", "6:/d/model-6", "7:global_step/sec=10",
                                                                    "7:step=7"});
}

TEST_CASE("a supervisor writes summaries when the time has come, and tells what it cannot write") {
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  const auto fed = df::placeholder<float>(training.graph, {}, {.name = "fed"});
  const auto mine = df::scalar_summary("step", training.step);
  df::EventWriter events(*training.files, "/events", *training.clock, {.host = "host", .suffix = {}});
  std::vector<std::string> lines;
  df::train::SupervisorOptions options = training.options();
  options.checkpoint_dir = {};
  options.events = &events;
  options.summary = mine;
  options.summary_every = std::chrono::minutes(2);
  options.log = [&](std::string_view line) { lines.emplace_back(line); };
  const auto train = [&] {
    df::train::Supervisor supervisor(training.graph, options);
    training.train(supervisor, 2);
    training.clock->advance(std::chrono::minutes(2));
    training.train(supervisor, 2);
  };
  train();
  events.flush();
  CHECK(events_in_short(*training.files, events.path()) ==
        std::vector<std::string>{"1:start", "0:graph", "3:global_step/sec=0", "3:step=3"});
  options.summary = df::scalar_summary("fed", fed);
  train();
  const auto is_told = [](const std::string& line) { return contains(line, "no summary could be written"); };
  CHECK(std::count_if(lines.begin(), lines.end(), is_told) == 1);
  options.global_step.reset();
  CHECK(code_of([&] { df::train::Supervisor(training.graph, options); }) == df::Code::invalid_argument);
}

TEST_CASE("events that cannot be written are no lost task, whatever the disk says") {
  struct FailingFiles final : df::testing::ChangedFiles {
    std::unique_ptr<df::WritableFile> create_file(const std::string&) override {
      df::throw_error(df::Status::unavailable("cannot write: Input/output error"));  // EIO
    }
  };
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::scalar_summary("step", training.step);
  FailingFiles failing;
  df::EventWriter events(failing, "/events", *training.clock, {.host = "host", .suffix = {}, .buffer_bytes = 1});
  std::vector<std::string> told;
  df::train::SupervisorOptions options = training.options();
  options.events = &events;
  options.summary_every_steps = 1;
  options.save_every_steps = 2;
  options.log = [&](std::string_view line) {
    if (contains(line, "no summary could be written")) told.emplace_back(line);
  };
  df::train::Supervisor supervisor(training.graph, options);
  training.train(supervisor, 6);
  CHECK(supervisor.num_recoveries() == 0);
  CHECK(supervisor.session().run(training.step).scalar() == 6);
  CHECK(training.latest() == 6);
  CHECK(training.errors.empty());
  // A failed writer gives the same error for each summary.
  REQUIRE(told.size() == 1);
  CHECK(contains(told[0], "Input/output error"));
}

TEST_CASE("files that the saver itself cannot reach are no lost task, whatever the disk says") {
  struct FailingFiles final : df::testing::ChangedFiles {
    std::string failing;  // the end of a path
    void require(const std::string& path) const {
      if (!failing.empty() && path.ends_with(failing)) df::throw_error(df::Status::unavailable("Input/output error"));
    }
    void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
      require(path);
      ChangedFiles::write_file_atomically(path, content);
    }
    bool exists(const std::string& path) override {
      require(path);
      return ChangedFiles::exists(path);
    }
  };
  const auto files = std::make_shared<FailingFiles>();
  CountedTraining training(std::make_shared<df::MemoryFileSystem>());
  df::set_device_files(training.device->context(), files);
  df::train::SupervisorOptions options = training.options();
  options.saver_options.files = files;
  options.save_every_steps = 1;
  df::train::Supervisor supervisor(training.graph, options);
  training.train(supervisor);
  REQUIRE(training.errors.empty());
  for (const std::string failing : {"/d/checkpoint", "/d/model-3.index"}) {
    files->failing = failing;
    training.train(supervisor);
    CAPTURE(failing);
    CHECK(supervisor.num_recoveries() == 0);
    REQUIRE(training.errors.size() == 1);
    CHECK(training.errors[0].code() == df::Code::unavailable);
    CHECK(contains(training.errors[0].message(), "Input/output error"));
    training.errors.clear();
  }
  CHECK_THROWS_WITH(supervisor.save(), Catch::Contains("Input/output error"));
  CHECK(supervisor.run([&](df::Session& session) {
    supervisor.save_what_is_new(session);
    return session.run(training.step).scalar();
  }) == 3);
  CHECK(supervisor.num_recoveries() == 0);
  CHECK(training.errors.size() == 1);
}
