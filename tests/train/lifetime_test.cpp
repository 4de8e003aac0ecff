// What trains and the objects that it refers to are destroyed in every order.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/orders.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace df = dflow;
using df::Code;

namespace {

std::vector<std::shared_ptr<df::Device>> devices_with(const std::shared_ptr<df::FileSystem>& files) {
  auto devices = df::cpu_devices(1, {.pool = std::make_shared<df::InlinePool>()});
  df::set_device_files(devices[0]->context(), files);
  return devices;
}

/// A model of one variable that is trained by `fit`, with a hook that saves it and the position in its batches.
struct FitWorld {
  using Batches = df::data::Iterator<df::Tensor<float>>;

  FitWorld() { session->run(df::initialize_variables(*graph)); }

  std::vector<Mortal> mortals() {
    return {mortal("graph", graph, [this](df::Graph& of) { CHECK(w.handle().is_of(of.store())); }),
            mortal("session", session,
                   [this](df::Session& of) {
                     const Code code = code_of([&] { return fit(of); });
                     const bool can_save = !hook || (saver && batches);
                     CHECK(code == (can_save ? Code::ok : Code::failed_precondition));
                     CHECK(of.run(w).scalar() > 0);
                   }),
            mortal("saver", saver,
                   [this](df::train::Saver& of) {
                     static_cast<void>(of.latest("/m"));
                     df::Graph other;
                     df::Session another(other, {.devices = devices_with(files)});
                     CHECK(code_of([&] { return of.save(another, "/m/other"); }) != Code::ok);
                     if (!session) return;
                     const Code expected = batches ? Code::ok : Code::failed_precondition;
                     CHECK(code_of([&] { return of.save(*session, "/m/own"); }) == expected);
                     if (!batches) return;
                     CHECK(code_of([&] {
                             of.restore(*session, "/m/own");
                             return 0;
                           }) == Code::ok);
                   }),
            mortal("batches", batches, [](Batches& of) { CHECK_FALSE(of.state().empty()); }),
            mortal("hook", hook, [](const df::train::Hook& of) { CHECK(of.on_epoch_end != nullptr); })};
  }

  df::train::History fit(df::Session& with) {
    std::vector<df::train::Hook> hooks;
    if (hook) hooks.push_back(*hook);
    return df::train::fit(with, step, data(), {.hooks = hooks});
  }
  static df::data::Dataset<df::Tensor<float>> data() {
    return df::data::from_tensors(df::Tensor<float>({2}, {1, 2})).batch(1);
  }

  std::shared_ptr<df::MemoryFileSystem> files = std::make_shared<df::MemoryFileSystem>();
  std::optional<df::Graph> graph{std::in_place};
  df::Output<float> x = df::placeholder<float>(*graph, {1});
  df::Variable<float> w{*graph, 1.0f, {.name = "w"}};
  df::train::TrainStep<float> step{df::feeds(x), df::reduce_sum(x), w.assign_add(1.0f)};
  std::optional<df::Session> session{std::in_place, *graph, df::SessionOptions{.devices = devices_with(files)}};
  std::optional<Batches> batches = data().iterate();
  std::optional<df::train::Saver> saver{
      std::in_place, *graph,
      df::train::SaverOptions{.states = {df::train::saved_iterator("batches", *batches)}, .files = files}};
  std::optional<df::train::Hook> hook = df::train::checkpoints(*saver, "/m/model");
};

/// A queue that threads of a coordinator fill.
struct QueueWorld {
  using Take = df::PreparedStep<df::FeedList<>, df::FetchList<df::Output<float>>>;

  QueueWorld() { runner->create_threads(*session, *coordinator); }

  std::vector<Mortal> mortals() {
    return {mortal("graph", graph, [this](df::Graph& of) { CHECK(queue.handle().is_of(of.store())); }),
            mortal("session", session, [this](df::Session& of) { took([&] { return of.run(taken); }); }),
            mortal("coordinator", coordinator,
                   [this](df::train::Coordinator& of) {
                     CHECK_FALSE(of.should_stop());
                     CHECK_FALSE(queue.handle().is_dangling());
                     if (session && runner) CHECK(runner->create_threads(*session, of) == 0);
                   }),
            mortal("runner", runner,
                   [](const df::train::QueueRunner& of) {
                     if (!of.queue().is_dangling()) CHECK(of.queue().name() == "queue");
                   }),
            mortal("take", take, [this](const Take& of) { took(of); })};
  }
  /// Elements come as long as the coordinator lives; then the queue is closed.
  void took(const auto& one) const {
    const Code code = code_of(one);
    if (coordinator) CHECK(code == Code::ok);
    if (!coordinator) CHECK((code == Code::ok || code == Code::out_of_range));
  }

  std::optional<df::Graph> graph{std::in_place};
  df::FifoQueue<float> queue{*graph, {.capacity = 2, .shapes = {{}}, .name = "queue"}};
  df::Output<float> taken = queue.dequeue();
  std::optional<df::Session> session{std::in_place, *graph, df::SessionOptions{.num_threads = 2}};
  std::optional<Take> take = session->prepare(df::feeds(), df::fetches(taken));
  std::optional<df::train::QueueRunner> runner{std::in_place, queue,
                                               std::vector{queue.enqueue(df::constant(*graph, 4.0f))}};
  std::optional<df::train::Coordinator> coordinator{std::in_place};
};

/// A loss that equals its feed.
struct FedGraph {
  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {});
  df::Variable<std::int64_t> count{graph, std::int64_t{0}, {.name = "count"}};
  df::Operation train = count.assign_add(std::int64_t{1});
};

}  // namespace

TEST_CASE("graph, session, saver, iterator and the hook that saves end in every order", "[train][lifetime]") {
  destroy_in_every_order<FitWorld>(
      [](const FitWorld& world) { CHECK(world.w.handle().is_dangling() == (!world.graph && !world.session)); });
}

TEST_CASE("graph, session, queue runner and its coordinator end in every order", "[train][lifetime]") {
  destroy_in_every_order<QueueWorld>([](const QueueWorld&) {});
}

TEST_CASE("a saved iterator that was moved from is told", "[train][lifetime]") {
  auto batches = FitWorld::data().iterate();
  const df::train::SavedState saved = df::train::saved_iterator("batches", batches);
  const std::string begin = saved.state();
  auto moved = std::move(batches);
  CHECK(code_of([&] { return saved.state(); }) == Code::failed_precondition);
  CHECK(code_of([&] { return saved.restore(begin); }) == Code::failed_precondition);
  static_cast<void>(moved.next());
  // The iterator is the same object when another one was assigned to it.
  batches = std::move(moved);
  CHECK(saved.state() != begin);
  saved.restore(begin)();
  CHECK(batches.position() == 0);
}

TEST_CASE("a restore that was prepared for an iterator that is gone by then is an error", "[train][lifetime]") {
  std::optional batches = FitWorld::data().iterate();
  const df::train::SavedState saved = df::train::saved_iterator("batches", *batches);
  const auto set = saved.restore(saved.state());
  batches.reset();
  CHECK(contains(error_of(
                     [&] {
                       set();
                       return 0;
                     },
                     Code::failed_precondition),
                 "the iterator of the saved state 'batches' is gone"));
}

TEST_CASE("hooks and supervisors whose event writer is gone say so", "[train][lifetime]") {
  df::MemoryFileSystem files;
  const df::RealClock clock;
  FedGraph model;
  {
    std::optional<df::EventWriter> events(std::in_place, files, "/logs", clock);
    const df::train::Hook hook = df::train::summaries(*events);
    events.reset();
    df::Session session(model.graph, {.num_threads = 1});
    session.run(df::initialize_variables(model.graph));
    const df::train::TrainStep<float> step(df::feeds(model.x), model.x, model.train);
    const auto data = df::data::from_range(std::vector{1.0f, 2.0f}).map([](float v) { return df::Tensor<float>(v); });
    CHECK(contains(
        error_of([&] { return df::train::fit(session, step, data, {.hooks = {hook}}); }, Code::failed_precondition),
        "the event writer is gone"));
  }
  std::vector<std::string> lines;
  std::optional<df::EventWriter> events(std::in_place, files, "/logs", clock);
  df::train::Supervisor supervisor(model.graph, {.global_step = model.count,
                                                 .events = &*events,
                                                 .summary_every_steps = 1,
                                                 .log = [&](std::string_view line) { lines.emplace_back(line); },
                                                 .poll_interval = std::chrono::milliseconds(1)});
  events.reset();
  CHECK(supervisor.run([&](df::Session& session) {
    session.run(model.train);
    return session.run(model.count).scalar();
  }) == 1);
  int told = 0;
  for (const std::string& line : lines) told += contains(line, "the event writer is gone") ? 1 : 0;
  CHECK(told == 1);
}

TEST_CASE("a supervisor keeps its graph", "[train][lifetime]") {
  auto model = std::make_unique<FedGraph>();
  df::train::Supervisor supervisor(model->graph, {.poll_interval = std::chrono::milliseconds(1)});
  const auto [train, count] = std::pair(model->train, model->count);
  const df::Graph moved = std::move(model->graph);
  model.reset();
  const auto body = [&](df::Session& session) {
    session.run(train);
    return session.run(count).scalar();
  };
  CHECK(supervisor.run(body) == 1);
  CHECK(count.name() == "count");
}

TEST_CASE("a variable scope says that its graph is gone", "[train][lifetime]") {
  std::optional<df::Graph> graph(std::in_place);
  const df::VariableScope scope(*graph, "tower");
  graph.reset();
  CHECK(contains(error_of([&] { return scope.get_variable<float>("w", {2}); }), "a graph that is gone"));
  CHECK(contains(error_of([&] { return scope.existing_variable<float>("w"); }), "a graph that is gone"));
}
