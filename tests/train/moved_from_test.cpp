// Values that were moved from are of use, or say what they are.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <chrono>
#include <future>
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

// NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved)
