#include <dflow/train/replicas/supervisor.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/train/replicas/sync_replicas.hpp>

#include <signal.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

/// A summary whose task is lost.
struct SummaryOfLostTask : df::Op<"SummaryOfLostTask", df::TypeList<std::string>> {
  static void infer(df::InferContext& context) { context.set_output(0, context.input(0)); }
};

}  // namespace

template <>
struct dflow::Kernel<SummaryOfLostTask, dflow::Cpu, std::string> {
  void operator()(KernelContext&, const Tensor<std::string>&, Tensor<std::string>&) const {
    throw_error(Status::unavailable("the task of the summary is lost"));
  }
};

namespace {

/// Blocks until it is told, or stop is requested, which throws Cancelled.
struct Gate {
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  void pass(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    if (!changed.wait(lock, stop, [this] { return is_open; })) df::throw_error(df::Status::cancelled("told to stop"));
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  bool is_open = false;
};

/// A clock that calls a function once, when it is asked for the time of day.
class ClockWithCallback final : public df::Clock {
 public:
  time_point now() const override { return real_.now(); }
  wall_time_point wall_now() const override {
    if (const auto call = std::exchange(on_wall_now, nullptr)) call();
    return real_.wall_now();
  }
  df::TimerId schedule_at(time_point time, df::UniqueFunction<void()> callback) override {
    return real_.schedule_at(time, std::move(callback));
  }
  bool cancel(df::TimerId id) override { return real_.cancel(id); }

  mutable std::function<void()> on_wall_now;

 private:
  df::RealClock real_;
};

/// A model of one variable, and the options of its supervisor.
struct SupervisedModel {
  df::train::SupervisorOptions options() {
    return {.session = {.devices = {device}}, .poll_interval = std::chrono::milliseconds(1)};
  }
  double train(df::train::Supervisor& supervisor) {
    return supervisor.run([&](df::Session& session) { return session.run(bump).scalar(); });
  }

  std::shared_ptr<df::Device> device = std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{
      .pool = std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "supervised"})});
  df::Graph graph;
  df::Variable<float> weight{graph, 1.0f, {.name = "weight"}};
  df::Output<float> bump = weight + 1.0f;
};

/// A replica that trains in step with others on one device.
struct SupervisedReplica {
  SupervisedReplica(const std::shared_ptr<df::Device>& device, const df::train::SyncReplicasOptions& options)
      : sync(df::train::GradientDescent(0.5f), options),
        train(sync.minimize(df::square(model.weight * 1.0f))),
        session(model.graph, {.devices = {device}}) {
    session.run(df::initialize_variables(model.graph));
  }

  SupervisedModel model;
  df::train::SyncReplicas sync;
  df::Operation train;
  df::Session session;
};

/// The steps that the first of two replicas makes, on the device where the other one was.
std::int64_t steps_of_the_first(const std::shared_ptr<df::Device>& device) {
  SupervisedReplica first(device, {.replicas = 2});
  std::jthread leads([&](const std::stop_token& ends) { first.sync.lead(first.session, ends); });
  first.sync.begin(first.session);
  for (int i = 0; i < 3; ++i) first.session.run({.deadline = std::chrono::seconds(20)}, {}, first.train);
  return first.session.run(first.sync.global_step()).scalar();
}

}  // namespace

TEST_CASE("a model that does not become ready in time is told with the variables that have no value") {
  SupervisedModel model;
  const df::Variable<float> other(model.graph, 2.0f, {.name = "other"}), given(model.graph, 3.0f, {.name = "given"});
  {
    df::Session session(model.graph, model.options().session);
    session.run(given.assign(df::constant(model.graph, 4.0f)));
  }
  df::train::SupervisorOptions options = model.options();
  options.is_chief = false;
  options.ready_timeout = std::chrono::milliseconds(5);
  df::train::Supervisor supervisor(model.graph, options);
  const df::Status status = status_of([&] { supervisor.session(); });
  CHECK(status.code() == df::Code::deadline_exceeded);
  CHECK_THAT(status.to_string(), Catch::Contains("has not initialised 'weight', 'other'"));
}

TEST_CASE("a replica gives its local variables their values, and its chief neither waits for them nor saves them") {
  SupervisedModel model;
  const df::Variable<std::int64_t> seen(model.graph, 3, {.name = "seen", .local = true});
  const df::Variable<float> twice(model.graph, model.weight * 2.0f, {.name = "twice", .local = true});
  const df::Variable<float> row(model.graph, df::Tensor<float>({2}, {1, 2}), {.name = "row", .local = true});
  CHECK(df::global_variables(model.graph).size() == 1);
  CHECK(df::trainable_variables(model.graph).size() == 1);
  CHECK(df::local_variables(model.graph).size() == 3);
  const df::Operation count = seen.assign_add(1);
  df::Session other(model.graph, model.options().session);
  other.run(df::initialize_variables(model.graph));
  CHECK_FALSE(other.run(seen.is_initialized()).scalar());
  df::train::SupervisorOptions options = model.options();
  options.is_chief = false;
  options.log = [](std::string_view) {};
  {
    df::train::Supervisor supervisor(model.graph, options);
    for (int i = 0; i < 2; ++i) supervisor.run([&](df::Session& session) { session.run(count); });
    CHECK(other.run(seen).scalar() == 5);
    CHECK(other.run(twice).scalar() == 2);
    CHECK(other.run(row)(1) == 2);
    int bodies = 0;
    supervisor.run([&](df::Session& session) {
      if (++bodies == 1) df::throw_error(df::Status::unavailable("a task is lost"));
      session.run(count);
    });
    CHECK(other.run(seen).scalar() == 6);  // it has kept its value
  }
  const df::testing::TemporaryFolder folder;
  df::train::Saver saver(model.graph);
  df::Session anew(model.graph);
  CHECK_NOTHROW(anew.run(df::initialize_variables(model.graph)));
  CHECK_NOTHROW(saver.save(anew, folder.path() + "/model"));  // `seen` has no value
  anew.run(df::initialize_local_variables(model.graph));
  CHECK(anew.run(seen).scalar() == 3);
}

TEST_CASE("a lead that fails before the replica has begun is made anew, as is the beginning") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  Gate gate;
  int leads = 0, begins = 0;
  options.lead = [&](const df::train::Leading&) {
    if (++leads < 3) df::throw_error(df::Status::unavailable("a task that only the lead uses is gone"));
    gate.open();
  };
  options.begin = [&](df::Session&, const std::stop_token& stop) {
    ++begins;
    gate.pass(stop);
  };
  df::train::Supervisor supervisor(model.graph, options);
  CHECK(model.train(supervisor) == 2);
  CHECK(leads == 3);
  CHECK(begins == 3);
}

TEST_CASE("what the lead throws before the replica has begun is thrown") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  options.lead = [](const df::train::Leading&) { throw std::invalid_argument("no such step"); };
  options.begin = [](df::Session&, const std::stop_token& stop) { Gate().pass(stop); };
  df::train::Supervisor supervisor(model.graph, options);
  for (int round = 0; round < 3; ++round) {
    CHECK_THROWS_WITH(supervisor.session(), Catch::Contains("no such step"));
  }
}

TEST_CASE("a supervisor may go while its lead runs, and stops it") {
  for (const bool fails : {false, true}) {
    SupervisedModel model;
    df::train::SupervisorOptions options = model.options();
    std::atomic<bool> has_ended = false;
    options.lead = [&](const df::train::Leading& with) {
      std::condition_variable_any never;
      std::mutex mutex;
      std::unique_lock lock(mutex);
      never.wait(lock, with.stop, [] { return false; });
      with.session.run(model.bump);  // the session is there until it has ended
      has_ended = true;
      if (fails) df::throw_error(df::Status::internal("at the end"));
    };
    {
      df::train::Supervisor supervisor(model.graph, options);
      model.train(supervisor);
    }
    CHECK(has_ended);
  }
}

TEST_CASE("a lead ends before its session is lost by a chief that was told to stop") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  options.log = [](std::string_view) {};
  std::atomic<bool> has_ended = false;
  options.lead = [&](const df::train::Leading& with) {
    try {
      Gate().pass(with.stop);
    } catch (const df::Error&) {  // told to stop
    }
    with.session.run(model.bump);
    has_ended = true;
  };
  df::train::Supervisor supervisor(model.graph, options);
  supervisor.session();
  int calls = 0;
  supervisor.run_stopped(std::chrono::minutes(1), [&](df::Session&, df::Duration) {
    if (++calls == 1) df::throw_error(df::Status::unavailable("a task is lost"));
    CHECK(has_ended);
  });
  CHECK(calls == 2);
}

TEST_CASE("an event writer that is destroyed while the lead saves ends after the lead's event") {
  const df::testing::TemporaryFolder folder;
  SupervisedModel model;
  const df::Variable<std::int64_t> step(model.graph, 0, {.name = "step", .trainable = false});
  const df::Operation next = step.assign_add(1);
  const auto clock = std::make_shared<ClockWithCallback>();
  auto events = std::make_unique<df::EventWriter>(std::make_shared<df::PosixFileSystem>(), folder.path(), clock);
  std::promise<void> is_added;
  std::atomic<bool> is_gone = false, was_gone = false;
  df::train::SupervisorOptions options = model.options();
  options.checkpoint_dir = folder.path();
  options.global_step = step;
  options.events = events.get();
  options.log = [](std::string_view) {};
  options.lead = [&](const df::train::Leading& with) {
    with.session.run(next);
    clock->on_wall_now = [&] {
      is_added.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // time enough for whoever does not wait
      was_gone = is_gone.load();
    };
    with.save();
  };
  df::train::Supervisor supervisor(model.graph, options);
  supervisor.session();
  is_added.get_future().wait();
  events = nullptr;
  is_gone = true;
  supervisor.wait_for_lead();
  CHECK_FALSE(was_gone);
}

TEST_CASE("a beginning that throws anything is repeated by the next call") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  int begins = 0, leads = 0;
  options.lead = [&](const df::train::Leading&) { ++leads; };
  options.begin = [&](df::Session&, const std::stop_token&) {
    if (++begins < 3) throw std::runtime_error("not yet");
  };
  df::train::Supervisor supervisor(model.graph, options);
  CHECK_THROWS_AS(supervisor.session(), std::runtime_error);
  CHECK_THROWS_AS(model.train(supervisor), std::runtime_error);
  CHECK(model.train(supervisor) == 2);
  CHECK(begins == 3);
  supervisor.wait_for_lead();
  CHECK(leads == 3);
}

TEST_CASE("SIGTERM ends a beginning that waits") {
  struct sigaction before {};
  REQUIRE(::sigaction(SIGTERM, nullptr, &before) == 0);
  for (const bool is_chief : {true, false}) {
    SupervisedModel model;
    df::Session first(model.graph, {.devices = {model.device}});
    first.run(df::initialize_variables(model.graph));
    df::train::SupervisorOptions options = model.options();
    options.is_chief = is_chief;
    options.save_on_sigterm = true;
    options.lead = [](const df::train::Leading& with) { Gate().pass(with.stop); };
    options.begin = [](df::Session&, const std::stop_token& stop) {
      ::raise(SIGTERM);
      Gate().pass(stop);
    };
    df::train::Supervisor supervisor(model.graph, options);
    CHECK_THROWS_WITH(supervisor.session(), Catch::Contains("SIGTERM"));
    CHECK(code_of([&] { supervisor.session(); }) == df::Code::cancelled);
  }
}

TEST_CASE("a stop and SIGTERM end a supervisor that waits for the model, however seldom it looks") {
  for (const bool by_signal : {false, true}) {
    SupervisedModel model;
    struct sigaction before {};
    REQUIRE(::sigaction(SIGTERM, nullptr, &before) == 0);
    const auto clock = std::make_shared<df::VirtualClock>();
    std::stop_source stop;
    df::train::SupervisorOptions options = model.options();
    options.is_chief = false;  // nobody initialises
    options.save_on_sigterm = by_signal;
    options.stop = stop.get_token();
    options.poll_interval = std::chrono::hours(1);
    options.ready_timeout = std::chrono::hours(3);
    options.clock = clock;
    df::train::Supervisor supervisor(model.graph, options);
    auto ended = std::async(std::launch::async, [&] { return status_of([&] { supervisor.session(); }); });
    while (clock->next_deadline() == df::Clock::never) std::this_thread::yield();
    if (by_signal) {
      ::raise(SIGTERM);
    } else {
      stop.request_stop();
    }
    const df::Status status = ended.get();  // although nobody moves the clock
    CHECK(status.code() == df::Code::cancelled);
    CHECK(mentions(status, by_signal ? "SIGTERM has come" : "stop was requested"));
    CHECK(clock->now() < df::Clock::time_point(std::chrono::hours(1)));
    CHECK(supervisor.should_stop());
  }
}

TEST_CASE("a stop ends a beginning that waits, and the loop") {
  SupervisedModel model;
  std::stop_source stop;
  df::train::SupervisorOptions options = model.options();
  options.stop = stop.get_token();
  options.begin = [&](df::Session&, const std::stop_token& ends) {
    stop.request_stop();
    Gate().pass(ends);
  };
  df::train::Supervisor supervisor(model.graph, options);
  CHECK_FALSE(supervisor.should_stop());
  CHECK(code_of([&] { supervisor.session(); }) == df::Code::cancelled);
  CHECK(supervisor.should_stop());
}

TEST_CASE("waiting for the lead calls its body with each session, and elsewhere once") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  int leads = 0, bodies = 0;
  options.lead = [&](const df::train::Leading&) {
    if (++leads < 3) df::throw_error(df::Status::aborted("a task was started anew"));
  };
  df::train::Supervisor chief(model.graph, options);
  CHECK(chief.wait_for_lead([&](df::Session&) {
    ++bodies;
    return true;
  }));
  CHECK(leads == 3);
  CHECK(bodies >= 1);
  CHECK(bodies <= 3);
  options.is_chief = false;
  df::train::Supervisor other(model.graph, options);
  other.wait_for_lead();
  bodies = 0;
  CHECK_FALSE(other.wait_for_lead([&](df::Session& session) {
    CHECK(session.run(model.bump).scalar() == 2);
    return ++bodies != 1;
  }));
  CHECK(bodies == 1);
  CHECK(leads == 3);
}

TEST_CASE("a chief that finishes leaves again when its session is made anew meanwhile") {
  SupervisedModel model;
  df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), {.replicas = 1});
  const df::Operation train = sync.minimize(df::square(model.weight * 1.0f));
  df::train::SupervisorOptions options = sync.supervised(model.options());
  int leads = 0, attempts = 0;
  options.lead = [&, lead = options.lead](const df::train::Leading& with) {
    // The supervisor would try for ever.
    if (++attempts > 30) df::throw_error(df::Status::internal("the lead fails again and again"));
    lead(with);
    if (++leads < 3) df::throw_error(df::Status::unavailable("lost when all had left"));
  };
  df::train::Supervisor supervisor(model.graph, options);
  for (int i = 0; i < 3; ++i) supervisor.run([&](df::Session& session) { session.run(train); });
  CHECK(supervisor.run([&](df::Session& session) { return session.run(sync.global_step()).scalar(); }) == 3);
  sync.finish(supervisor);
  CHECK(leads == 3);
  CHECK(attempts == 3);
}

TEST_CASE("a beginning that waits longer than the model may take to be ready ends with the reason") {
  SupervisedModel model;
  df::train::SupervisorOptions options = model.options();
  const bool is_chief = GENERATE(true, false);
  if (!is_chief) df::Session(model.graph, options.session).run(df::initialize_variables(model.graph));
  options.is_chief = is_chief;
  options.ready_timeout = std::chrono::milliseconds(50);
  options.begin = [](df::Session&, const std::stop_token& stop) { Gate().pass(stop); };
  df::train::Supervisor supervisor(model.graph, options);
  for (int round = 0; round < 3; ++round) {
    const df::Status status = status_of([&] { supervisor.session(); });
    CHECK(status.code() == df::Code::deadline_exceeded);
    CHECK_THAT(status.to_string(), Catch::Contains("no chief has led this replica"));
  }
}

TEST_CASE("a stop ends the lead while a body runs, and what it has done is saved after it") {
  SupervisedModel model;
  const df::Variable<std::int64_t> step(model.graph, std::int64_t{0}, {.name = "step", .trainable = false});
  const df::testing::TemporaryFolder folder;
  for (const bool by_signal : {false, true}) {
    df::train::SupervisorOptions options = model.options();
    std::stop_source stop;
    std::promise<void> lead_ends;
    options.checkpoint_dir = folder.path();
    options.global_step = step;
    options.save_on_sigterm = by_signal;
    options.stop = stop.get_token();
    options.lead = [&](const df::train::Leading& with) {
      std::condition_variable_any never;
      std::mutex mutex;
      std::unique_lock lock(mutex);
      never.wait(lock, with.stop, [] { return false; });
      CHECK(with.ends.stop_requested());
      with.session.run(step.assign_add(1));
      lead_ends.set_value();
    };
    df::train::Supervisor supervisor(model.graph, options);
    CHECK_FALSE(supervisor.stop_token().stop_requested());
    supervisor.run([&](df::Session&) {
      by_signal ? static_cast<void>(::raise(SIGTERM)) : static_cast<void>(stop.request_stop());
      lead_ends.get_future().wait();  // while the body runs
      CHECK(supervisor.stop_token().stop_requested());
    });
    CHECK(supervisor.should_stop());
    CHECK(df::train::latest_checkpoint(folder.path()) == folder.path() + (by_signal ? "/model-2" : "/model-1"));
  }
}

TEST_CASE("what a lead has left half done is not saved") {
  SupervisedModel model;
  const df::Variable<std::int64_t> step(model.graph, std::int64_t{0}, {.name = "step", .trainable = false});
  const df::testing::TemporaryFolder folder;
  for (const bool is_stopped : {false, true}) {
    df::train::SupervisorOptions options = model.options();
    std::stop_source stop;
    std::promise<void> lead_fails;
    options.checkpoint_dir = folder.path();
    options.global_step = step;
    options.save_every_steps = 1;
    options.stop = stop.get_token();
    bool is_first = true;
    options.lead = [&](const df::train::Leading& with) {
      if (!std::exchange(is_first, false)) return;
      with.session.run(step.assign_add(1));
      lead_fails.set_value();
      df::throw_error(df::Status::unavailable("a parameter server is lost"));
    };
    df::train::Supervisor supervisor(model.graph, options);
    supervisor.run([&](df::Session&) {
      lead_fails.get_future().wait();
      if (is_stopped) stop.request_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until its status is known
    });
    CHECK(supervisor.should_stop() == is_stopped);
    CHECK(df::train::latest_checkpoint(folder.path()) == folder.path() + "/model-0");
  }
}

TEST_CASE("a summary that finds a task lost ends the lead before its session") {
  SupervisedModel model;
  const df::Variable<std::int64_t> step(model.graph, std::int64_t{0}, {.name = "step", .trainable = false});
  const df::Operation advance = step.assign_add(1);
  df::MemoryFileSystem files;
  df::RealClock clock;
  df::train::SupervisorOptions options = model.options();
  options.session = {.ops = df::standard_ops + df::ops<SummaryOfLostTask>};
  df::EventWriter events(files, "/events", clock, {.host = "host"});
  options.events = &events;
  options.global_step = step;
  options.summary = df::apply<SummaryOfLostTask>(df::scalar_summary("weight", model.weight.read()));
  options.summary_every_steps = 1;
  std::atomic<bool> leads{false};
  options.lead = [&](const df::train::Leading& with) {
    leads = true;
    std::condition_variable_any never;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    never.wait(lock, with.stop, [] { return false; });
    leads = false;
  };
  df::train::Supervisor supervisor(model.graph, options);
  supervisor.run([&](df::Session& session) {
    session.run(advance);
    while (!leads) std::this_thread::yield();
  });
  CHECK(supervisor.num_recoveries() == 1);
  CHECK_FALSE(leads);
}

TEST_CASE("a replica that is told to stop while its body waits for others leaves, and the body ends") {
  SupervisedModel model;
  df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), {.replicas = 2, .rank = 1});
  const df::Operation train = sync.minimize(df::square(model.weight * 1.0f));
  df::Session chief(model.graph, model.options().session);
  chief.run(df::initialize_variables(model.graph));
  std::jthread leads([&](const std::stop_token& stop) { sync.lead(chief, stop); });
  df::train::SupervisorOptions options = sync.supervised(model.options());
  options.is_chief = false;
  std::stop_source stop;
  options.stop = stop.get_token();
  df::train::Supervisor supervisor(model.graph, options);
  int bodies = 0;
  sync.train(supervisor, 10, [&](df::Session& session, std::int64_t step) {
    CHECK(step == 0);
    ++bodies;
    auto asks = std::async(std::launch::async, [&] { stop.request_stop(); });
    session.run(train);  // replica 0 never comes
  });
  CHECK(bodies == 1);
  CHECK(chief.run(sync.global_step()).scalar() == 0);
}

TEST_CASE("a replica that is told to stop before it has begun leaves, and the others go on without it") {
  enum class Phase { starts, waits_for_variables, loses_a_task, waits_for_chief };
  for (const Phase phase : {Phase::starts, Phase::waits_for_variables, Phase::loses_a_task, Phase::waits_for_chief}) {
    INFO("phase " << static_cast<int>(phase));
    SupervisedModel model;
    df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), {.replicas = 2, .rank = 1});
    static_cast<void>(sync.minimize(df::square(model.weight * 1.0f)));
    if (phase >= Phase::loses_a_task) {
      df::Session(model.graph, model.options().session).run(df::initialize_variables(model.graph));
    }
    std::stop_source stop;
    if (phase == Phase::starts) stop.request_stop();
    df::train::SupervisorOptions options = sync.supervised(model.options());
    options.is_chief = false;
    options.stop = stop.get_token();
    options.log = [&](std::string_view line) {
      if (line.find("waits for the chief to initialise") != std::string_view::npos) stop.request_stop();
    };
    options.begin = [&, begin = options.begin](df::Session& session, const std::stop_token& ends) {
      if (phase == Phase::loses_a_task) {
        stop.request_stop();
        df::throw_error(df::Status::unavailable("a task is lost"));
      }
      auto asks = std::async(std::launch::async, [&] { stop.request_stop(); });
      begin(session, ends);  // nobody leads
    };
    df::train::Supervisor supervisor(model.graph, options);
    sync.train(supervisor, 10, [](df::Session&, std::int64_t) { FAIL("it has not begun"); });
    sync.finish(supervisor);
    CHECK(steps_of_the_first(model.device) == 3);
  }
}

TEST_CASE("a replica that is told to stop has left also if the leader hears of it too late") {
  SupervisedModel model;
  SupervisedReplica first(model.device, {.replicas = 3}), third(model.device, {.replicas = 3, .rank = 2});
  Gate gate;
  std::promise<void> is_busy;
  const std::function<void()> save = [&, has_begun = false]() mutable {
    if (!std::exchange(has_begun, true)) is_busy.set_value();
    gate.pass({});
  };
  std::jthread leads([&](const std::stop_token& ends) { first.sync.lead(first.session, ends, save); });
  for (SupervisedReplica* one : {&first, &third}) one->sync.begin(one->session);
  auto leaves = std::async(std::launch::async, [&] { third.sync.leave(third.session); });
  is_busy.get_future().wait();
  df::train::SyncReplicas sync(df::train::GradientDescent(0.5f),
                               {.replicas = 3, .rank = 1, .end_patience = std::chrono::milliseconds(20)});
  static_cast<void>(sync.minimize(df::square(model.weight * 1.0f)));
  df::train::SupervisorOptions options = sync.supervised(model.options());
  options.is_chief = false;
  std::stop_source stop;
  options.stop = stop.get_token();
  {
    df::train::Supervisor supervisor(model.graph, options);
    sync.train(supervisor, 10, [&](df::Session&, std::int64_t) { stop.request_stop(); });
    CHECK(supervisor.should_stop());
  }
  gate.open();
  for (int i = 0; i < 3; ++i) first.session.run({.deadline = std::chrono::seconds(20)}, {}, first.train);
  CHECK(first.session.run(first.sync.global_step()).scalar() == 3);
  leaves.get();
}

TEST_CASE("a replica ends its training well when the chief was told to stop, however many are in a step") {
  SupervisedModel model;
  df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), {.replicas = 2, .rank = 1});
  const df::Operation train = sync.minimize(df::square(model.weight * 1.0f));
  df::Session chief(model.graph, model.options().session);
  chief.run(df::initialize_variables(model.graph));
  std::stop_source stop;
  const std::function<void()> save;
  const std::function<void(std::string_view)> say;
  const std::stop_token token = stop.get_token();
  std::jthread leads([&] { sync.lead({chief, token, save, say, token}); });
  df::train::SupervisorOptions options = sync.supervised(model.options());
  options.is_chief = false;
  df::train::Supervisor supervisor(model.graph, options);
  int bodies = 0;
  sync.train(supervisor, 10, [&](df::Session& session, std::int64_t) {
    ++bodies;
    auto asks = std::async(std::launch::async, [&] { stop.request_stop(); });
    session.run(train);
  });
  CHECK(bodies == 1);
  CHECK_FALSE(supervisor.should_stop());
  sync.finish(supervisor);  // it has left: waits for nobody
}

TEST_CASE("a chief that finishes does not wait for a replica whose process is lost") {
  for (const bool with_patience : {false, true}) {
    SupervisedModel model;
    df::train::SyncReplicasOptions of{.aggregate = 1, .replicas = 2, .end_patience = std::chrono::milliseconds(100)};
    if (with_patience) of.patience = std::chrono::milliseconds(50);
    df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), of);
    const df::Operation train = sync.minimize(df::square(model.weight * 1.0f));
    df::train::SupervisorOptions options = sync.supervised(model.options());
    std::atomic<bool> names_nobody{false};
    options.log = [&](std::string_view line) { names_nobody = names_nobody || line.ends_with("of replicas "); };
    df::train::Supervisor supervisor(model.graph, options);
    int steps = 0;
    sync.train(supervisor, 5, [&](df::Session& session, std::int64_t) {
      ++steps;
      session.run(train);
    });
    CHECK(steps == 5);
    sync.finish(supervisor);  // replica 1 was never there
    CHECK_FALSE(supervisor.should_stop());
    CHECK_FALSE(names_nobody);  // once it is dropped, the lead waits for nobody
  }
}

TEST_CASE("a chief that is told to stop finishes without an error, and trains with all replicas the next time") {
  SupervisedModel model;
  df::train::SyncReplicas sync(df::train::GradientDescent(0.5f), {.replicas = 1});
  const df::Operation train = sync.minimize(df::square(model.weight * 1.0f));
  for (int round = 0; round < 3; ++round) {
    df::train::SupervisorOptions options = sync.supervised(model.options());
    std::stop_source stop;
    options.stop = stop.get_token();
    df::train::Supervisor supervisor(model.graph, options);
    int bodies = 0;
    sync.train(supervisor, 1000, [&](df::Session& session, std::int64_t) {
      session.run(train);
      if (++bodies == 3) stop.request_stop();
    });
    CHECK(bodies == 3);
    CHECK(supervisor.should_stop());
    sync.finish(supervisor);
  }
}
