// Values that were moved from can be used, or name themselves in an error.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

// NOLINTBEGIN(bugprone-use-after-move,hicpp-invalid-access-moved)

TEST_CASE("a dataset that was moved from is the dataset still") {
  auto dataset = df::data::from_tensors(df::Tensor<float>({4}, {1, 2, 3, 4}));
  const auto moved = std::move(dataset);
  CHECK(dataset.size() == 4);
  const auto sum = [](const auto& of) {
    float all = 0;
    for (const auto& element : of) all += element.scalar();
    return all;
  };
  CHECK(sum(dataset) == 10);
  CHECK(sum(moved.take(2)) == 3);
  CHECK(sum(dataset.shuffle(2).cache().repeat(2)) == 20);
}

TEST_CASE("optimizers that were moved from train as those that they were moved to") {
  df::Graph graph;
  const df::Variable<float> w(graph, df::constant(graph, 1.0f), {.name = "w"});
  const auto loss = df::square(w);
  const auto minimizes = [&](auto optimizer) {
    const auto moved = std::move(optimizer);
    optimizer.minimize(loss);
    moved.minimize(loss);
  };
  minimizes(df::train::AdamW(0.1f));
  minimizes(df::train::SGDW(0.1f, 0.01f));
  minimizes(df::train::LossScaleOptimizer(df::train::Adam(0.1f)));
  df::train::LossScaleOptimizer scaled(df::train::Adam(0.1f));
  const auto still = std::move(scaled);
  CHECK(code_of([&] { return scaled.scale(); }) == code_of([&] { return still.scale(); }));
  {
    df::Graph own;
    const df::Variable<float> v(own, df::constant(own, 1.0f), {.name = "v"});
    df::train::SyncReplicas sync(df::train::Adam(0.1f));
    const auto moved = std::move(sync);
    sync.minimize(df::square(v));
  }
  {
    df::Graph own;
    const df::Variable<float> v(own, df::constant(own, 1.0f), {.name = "v"});
    df::train::StaleSyncReplicas stale(df::train::GradientDescent(0.1f));
    const auto moved = std::move(stale);
    stale.minimize(df::square(v));
  }
}

TEST_CASE("a recurrent cell that was moved from is a handle to the same cell") {
  df::Graph graph;
  const auto x = df::constant(graph, df::Tensor<float>({1, 2}, {1, -1}));
  const auto is_handle = [&](auto cell) {
    const auto state = cell.zero_state(x);
    const auto first = std::get<0>(cell(x, state));
    auto moved = std::move(cell);
    const auto second = std::get<0>(cell(x, state)), third = std::get<0>(moved(x, state));
    cell = std::move(moved);
    const auto fourth = std::get<0>(moved(x, state));
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    const auto [a, b, c, d] = session.run(first, second, third, fourth);
    CHECK(bitwise_equal(a, b));
    CHECK(bitwise_equal(a, c));
    CHECK(bitwise_equal(a, d));
  };
  is_handle(df::BasicRnnCell(3));
  is_handle(df::LstmCell(3));
  is_handle(df::GruCell(3));
}

TEST_CASE("minibatches, a function and a step of training that were moved from say so") {
  df::train::Minibatches batches(10, 3);
  batches.next();
  auto drawn = std::move(batches);
  CHECK(code_of([&] { return batches.next(); }) == df::Code::failed_precondition);
  CHECK(drawn.next().size() == 3);

  df::Graph graph;
  auto function = df::function(graph, "f", [](df::Output<float> x) { return x + 1.0f; });
  const auto called = std::move(function);
  CHECK(code_of([&] { return function(df::constant(graph, 1.0f)); }) == df::Code::invalid_argument);
  CHECK(called(df::constant(graph, 1.0f)).is_valid());

  const auto x = df::placeholder<float>(graph, {df::dynamic});
  const df::Variable<float> w(graph, df::constant(graph, 1.0f), {.name = "w"});
  const auto loss = df::reduce_mean(df::square(x * w));
  df::train::TrainStep step(df::feeds(x), loss, df::train::GradientDescent(0.1f).minimize(loss));
  const auto moved = std::move(step);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto data = df::data::from_tensors(df::Tensor<float>({4}, {1, 2, 3, 4})).batch(2);
  CHECK(code_of([&] { return df::train::fit(session, step, data).epochs.size(); }) == df::Code::failed_precondition);

  df::Tensor<std::string> text(std::string("a"));
  const auto kept = std::move(text);
  df::MemoryFileSystem files;
  df::RealClock clock;
  df::EventWriter writer(files, "/events", clock);
  CHECK(code_of([&] { writer.add_summary(text, 1); }) == df::Code::invalid_argument);
}

TEST_CASE("a callback that throws at a session that was moved from ends in the log") {
  df::Graph graph;
  const auto x = df::constant(graph, 1.0f);
  df::Session session(graph);
  auto step = session.prepare(df::feeds(), df::fetches(x));
  const auto moved_step = std::move(step);
  auto moved = std::move(session);
  int calls = 0;
  const auto throws = [&](const df::Status& status, const auto&...) {
    ++calls;
    CHECK(status.code() == df::Code::failed_precondition);
    throw std::runtime_error("from the callback");
  };
  session.run_async({}, x, throws);
  step.run_async(throws);
  CHECK(calls == 2);
  CHECK(moved.run(x).scalar() == 1.0f);
}

TEST_CASE("an empty callback is one that does nothing") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {});
  std::atomic<int> errors = 0;
  df::Session session(graph, {.on_callback_error = [&](const df::Status&) { ++errors; }});
  const auto run = [&](df::PartialRun& of, std::vector<std::pair<df::AnyOutput, df::AnyTensor>> values) {
    of.fetch_async_erased(std::move(values), {}, false, nullptr);
  };
  auto partial = session.partial_run(df::feeds(x), df::fetches(x));
  run(partial, {{x, df::Tensor<float>::full({2}, 1.0f)}});
  run(partial, {{x, df::Tensor<float>(3.0f)}});
  CHECK(partial.fetch(x).scalar() == 3.0f);
  const auto moved = std::move(partial);
  run(partial, {});
  auto moved_session = std::move(session);
  session.run_async_erased({}, {}, {}, {}, nullptr);
  session.run_async({}, x, std::function<void(df::Status, df::Tensor<float>)>());
  moved_session.run_async({{x, 1.0f}}, x, std::function<void(df::Status, df::Tensor<float>)>());
  moved_session.run_async({}, x, static_cast<void (*)(const df::Status&, const df::Tensor<float>&)>(nullptr));
  moved_session.prepare(df::feeds(x), df::fetches(x))
      .run_async(df::Tensor<float>(1.0f), std::function<void(df::Status, df::Tensor<float>)>());
  const std::vector<df::AnyOutput> wanted{df::constant(graph, 1.0f)};
  moved_session.run_async_erased({}, {}, wanted, {}, nullptr);
  moved_session.run_async_erased({}, {}, {}, {}, nullptr);  // which fails
  { const df::Session last = std::move(moved_session); }
  CHECK(errors == 0);
}

TEST_CASE("no optimizer, and a dataset of no recipe, are refused") {
  const auto refused = [](const auto& make) {
    return code_of([&] { return make(), 0; }) == df::Code::invalid_argument;
  };
  const std::shared_ptr<const df::train::Optimizer> none;
  CHECK(refused([&] { df::train::SyncReplicas{none, {}}; }));
  CHECK(refused([&] { df::train::StaleSyncReplicas{none, {}}; }));
  CHECK(refused([&] { df::train::DecoupledWeightDecay(none, 0.1f, 0.1f); }));
  CHECK(refused([&] { df::train::LossScaleOptimizer{none}; }));
  CHECK(refused([&] { df::data::Dataset<int>{df::data::SharedRecipe()}; }));
  df::Graph graph;
  const df::Variable<float> v(graph, 1.0f);
  df::train::Saver saver(graph);
  CHECK(refused([&] { df::train::checkpoints(saver, "/c", {.every_steps = -1}); }));
  CHECK(refused([&] { df::data::from_range(std::vector<int>{1}).map([](int i) { return i; }, {.ahead = -1}); }));
}

// NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved)
