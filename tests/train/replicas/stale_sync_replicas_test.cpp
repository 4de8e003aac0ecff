#include <dflow/train/replicas/stale_sync_replicas.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using train::LateReplicas;
using train::StaleSyncReplicas;
using train::StaleSyncReplicasOptions;

namespace {

/// A replica that adds one to a variable of its own in every step: the variable counts its applied steps.
struct StaleModel {
  std::shared_ptr<Device> device;
  Graph graph;
  std::vector<Variable<float>> applied;  ///< by rank
  std::optional<StaleSyncReplicas> stale;
  Operation train;
  std::optional<Session> session;

  StaleModel(const std::shared_ptr<Device>& shared, const StaleSyncReplicasOptions& options) : device(shared) {
    for (std::int64_t rank = 0; rank < options.replicas; ++rank) {
      applied.emplace_back(graph, 0.0f, VariableOptions{.name = "applied_" + std::to_string(rank)});
    }
    stale.emplace(train::GradientDescent(1.0), options);
    train = stale->minimize(applied[static_cast<std::size_t>(options.rank)] * -1.0f);
    session.emplace(graph, SessionOptions{.devices = {device}});
  }
  void step() { session->run(train); }
  float of(std::size_t rank) { return session->run(applied[rank]).scalar(); }
};

std::shared_ptr<Device> stale_device() {
  return std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(2, ThreadPoolOptions{.name = "stale"})});
}

std::vector<std::unique_ptr<StaleModel>> stale_models(const StaleSyncReplicasOptions& options) {
  const auto device = stale_device();
  std::vector<std::unique_ptr<StaleModel>> models;
  for (std::int64_t rank = 0; rank < options.replicas; ++rank) {
    StaleSyncReplicasOptions own = options;
    own.rank = rank;
    models.push_back(std::make_unique<StaleModel>(device, own));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  return models;
}

/// The chief's part beside training.
struct StaleLeading {
  std::promise<Status> ended;
  std::jthread thread;

  explicit StaleLeading(StaleModel& model)
      : thread([this, &model](const std::stop_token& stop) {
          Status status;
          try {
            model.stale->lead(*model.session, stop);
          } catch (const Error& error) {
            status = error.status();
          }
          ended.set_value(status);
        }) {}
};

}  // namespace

TEST_CASE("No replica is further ahead of the slowest than the staleness allows, and all come to the end") {
  constexpr std::int64_t num_steps = 40;
  for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4}, train::unbounded_staleness}) {
    auto models = stale_models({.staleness = staleness, .replicas = 3});
    StaleLeading leading(*models[0]);
    for (const auto& model : models) model->stale->begin(*model->session);
    std::atomic<int> num_too_early{0};
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
          StaleModel& model = *models[rank];
          for (std::int64_t step = 0; step < num_steps; ++step) {
            if (staleness != train::unbounded_staleness) {
              // The others may only have finished more by now; a replica that has left has finished all.
              for (std::size_t other = 0; other < 3; ++other) {
                num_too_early += static_cast<std::int64_t>(model.of(other)) < step - staleness;
              }
            }
            model.step();
          }
          model.stale->leave(*model.session);
        });
      }
    }
    CAPTURE(staleness);
    CHECK(num_too_early == 0);
    for (std::size_t rank = 0; rank < 3; ++rank) CHECK(models[0]->of(rank) == static_cast<float>(num_steps));
    CHECK(models[0]->session->run(models[0]->stale->global_step()).scalar() == 3 * num_steps);
    CHECK(leading.ended.get_future().get().ok());
  }
}

TEST_CASE("A replica goes on as far as the bound, and no further until the slowest has made a step") {
  auto models = stale_models({.staleness = 2, .replicas = 2});
  for (const auto& model : models) model->stale->begin(*model->session);
  models[0]->step();
  models[0]->step();
  auto third = std::async(std::launch::async, [&] { models[0]->step(); });  // ends when the fourth may begin
  while (models[1]->of(0) < 3) std::this_thread::yield();
  CHECK(third.wait_for(std::chrono::milliseconds(0)) == std::future_status::timeout);
  models[1]->step();
  third.get();
  CHECK(models[1]->of(0) == 3);
  CHECK(models[1]->of(1) == 1);
}

TEST_CASE("One replica alone, and replicas in step, train as the optimizer does") {
  const auto values_after = [](std::int64_t replicas) {
    auto models = stale_models({.replicas = replicas});
    for (const auto& model : models) model->stale->begin(*model->session);
    for (int step = 0; step < 5; ++step) {
      std::vector<std::jthread> threads;
      for (const auto& model : models) threads.emplace_back([&model] { model->step(); });
    }
    std::vector<float> values;
    for (std::size_t rank = 0; rank < models.size(); ++rank) values.push_back(models[0]->of(rank));
    return values;
  };
  CHECK(values_after(1) == std::vector<float>{5});
  CHECK(values_after(3) == std::vector<float>{5, 5, 5});
}

TEST_CASE("The gradients of a replica may be clipped before they are applied with bounded staleness") {
  const auto trained = [](bool is_stale) {
    Graph graph;
    const Variable<float> weights(graph, Tensor<float>({2}, {3, 4}), {.name = "weights"});
    const auto ids = constant(graph, Tensor<std::int32_t>({2}, {0, 2}));
    const Variable<float> table(graph, Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {.name = "table"});
    const auto loss = reduce_sum(square(embedding_lookup(table, ids) * weights));
    const train::MinimizeOptions clipped{
        .change = [](auto gradients) { return train::clip_by_global_norm(std::move(gradients), 0.5); }};
    StaleSyncReplicas stale(train::GradientDescent(0.5f), {});
    const Operation train =
        is_stale ? stale.minimize(loss, clipped) : train::GradientDescent(0.5f).minimize(loss, clipped);
    Session session(graph);
    session.run(initialize_variables(graph));
    if (is_stale) stale.begin(session);
    for (int i = 0; i < 3; ++i) session.run(train);
    const auto [w, t] = session.run(weights, table);
    std::vector<float> values(w.begin(), w.end());
    values.insert(values.end(), t.begin(), t.end());
    return values;
  };
  CHECK(trained(true) == trained(false));
  CHECK(trained(true)[0] > 2.0f);  // three steps of 0.25 at most
}

TEST_CASE("A replica that ends early, and one that comes late, stall nobody") {
  auto models = stale_models({.staleness = 1, .replicas = 3});
  StaleLeading leading(*models[0]);
  for (const std::size_t rank : {0, 1}) models[rank]->stale->begin(*models[rank]->session);
  models[1]->step();
  models[1]->stale->leave(*models[1]->session);
  for (int step = 0; step < 10; ++step) models[0]->step();
  // The late one begins where the others are, and from there on it is waited for.
  models[2]->stale->begin(*models[2]->session);
  models[0]->step();
  auto waits = std::async(std::launch::async, [&] { models[0]->step(); });
  models[2]->step();
  waits.get();
  // The replica that has left comes back.
  models[1]->stale->begin(*models[1]->session);
  models[1]->step();
  CHECK(models[0]->of(0) == 12);
  for (const auto& model : models) model->stale->leave(*model->session);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("A replica that dies is given up, or named to all, as was asked") {
  for (const LateReplicas late : {LateReplicas::drop, LateReplicas::fail}) {
    auto models = stale_models({.staleness = 1,
                                .replicas = 3,
                                .patience = std::chrono::milliseconds(late == LateReplicas::fail ? 1500 : 60),
                                .late = late});
    StaleLeading leading(*models[0]);
    for (const auto& model : models) model->stale->begin(*model->session);
    const auto train_on = [&](std::size_t rank) {
      return code_of([&] {
        for (int step = 0; step < 6; ++step) models[rank]->step();
      });
    };
    auto other = std::async(std::launch::async, [&] { return train_on(0); });
    const Code end = train_on(1), other_end = other.get();
    if (late == LateReplicas::fail) {
      CHECK(end == Code::deadline_exceeded);
      CHECK(other_end == Code::deadline_exceeded);
      const Status status = leading.ended.get_future().get();
      CHECK(status.code() == Code::deadline_exceeded);
      CHECK_THAT(std::string(status.message()), Catch::Contains("replicas 2 have not finished step 0 in time"));
      continue;
    }
    // One of them may have waited for the other alone when that was slow too, and have given it up.
    CHECK((end == Code::ok || end == Code::aborted));
    CHECK((other_end == Code::ok || other_end == Code::aborted));
    CHECK((end == Code::ok || other_end == Code::ok));
    // The step that it computed meanwhile is not applied, and it may come again.
    CHECK(code_of([&] { models[2]->step(); }) == Code::aborted);
    CHECK(models[0]->of(2) == 0);
    models[2]->stale->begin(*models[2]->session);
    for (const auto& model : models) model->stale->leave(*model->session);
    CHECK(leading.ended.get_future().get().ok());
  }
}

TEST_CASE("A replica of bounded staleness that is told to stop leaves, and the others go on without it") {
  for (const bool has_session : {true, false}) {
    auto models = stale_models({.replicas = 2});
    StaleLeading leading(*models[0]);
    StaleModel& other = *models[1];
    for (const auto& model : models) model->stale->begin(*model->session);
    std::stop_source stop;
    train::SupervisorOptions options = other.stale->supervised({.is_chief = false, .stop = stop.get_token()});
    options.session.devices = {other.device};
    train::Supervisor supervisor(other.graph, options);
    if (has_session) supervisor.session();
    stop.request_stop();
    other.stale->finish(supervisor);
    for (int i = 0; i < 3; ++i) models[0]->session->run({.deadline = std::chrono::seconds(20)}, {}, models[0]->train);
    models[0]->stale->leave(*models[0]->session);
    CHECK(leading.ended.get_future().get().ok());
  }
}

TEST_CASE("A leader that is stopped ends, and another one goes on") {
  auto models = stale_models({.replicas = 2});
  for (const auto& model : models) model->stale->begin(*model->session);
  {
    StaleLeading leading(*models[0]);
    leading.thread.request_stop();
    CHECK(leading.ended.get_future().get().ok());
  }
  StaleLeading leading(*models[1]);
  for (const auto& model : models) model->stale->leave(*model->session);
  CHECK(leading.ended.get_future().get().ok());
  // The test repeats this with the same models.
  StaleLeading once_more(*models[1]);
  for (const auto& model : models) model->stale->begin(*model->session);
  auto other = std::async(std::launch::async, [&] { models[0]->step(); });
  models[1]->step();
  other.get();
  for (const auto& model : models) model->stale->leave(*model->session);
  CHECK(once_more.ended.get_future().get().ok());
}

TEST_CASE("Options of bounded staleness that make no sense, and calls in the wrong order, are refused") {
  CHECK(code_of([] { StaleSyncReplicas(train::Adam(1e-3f), {.staleness = -1}); }) == Code::invalid_argument);
  CHECK(code_of([] { StaleSyncReplicas(train::Adam(1e-3f), {.replicas = 2, .rank = 2}); }) == Code::invalid_argument);
  CHECK(code_of([] { StaleSyncReplicas(train::Adam(1e-3f), {.replicas = 0}); }) == Code::invalid_argument);
  StaleModel model(stale_device(), {});
  CHECK(code_of([&] { model.stale->minimize(model.applied[0] * 1.0f); }) == Code::failed_precondition);
  const StaleSyncReplicas none(train::Adam(1e-3f), {});
  CHECK(code_of([&] { none.begin(*model.session); }) == Code::failed_precondition);
  model.session->run(initialize_variables(model.graph));
  CHECK(code_of([&] { model.step(); }) == Code::failed_precondition);  // it has not begun
}
