#include <dflow/train/replicas/sync_replicas.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;
using train::LateReplicas;
using train::SyncReplicas;
using train::SyncReplicasOptions;

namespace {

constexpr std::int64_t rows_in_all = 12, features = 5;

Tensor<float> sync_batch(std::int64_t step, std::int64_t begin, std::int64_t end) {
  Tensor<float> x({end - begin, features});
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < features; ++i) {
      x((row - begin), i) = std::sin(static_cast<float>(1 + step * 131 + row * 17 + i * 7));
    }
  }
  return x;
}

/// A replica of a small network: a graph and a session of its own, on devices that all of them share.
struct SyncModel {
  Graph graph{{.seed = 3}};
  Output<float> x;
  Output<float> loss;
  std::vector<Variable<float>> weights;
  Operation train;
  std::optional<SyncReplicas> sync;
  std::optional<Session> session;

  SyncModel(const std::shared_ptr<Device>& device, const std::optional<SyncReplicasOptions>& options) {
    x = placeholder<float>(graph, {dynamic, features});
    weights.emplace_back(graph, random_normal<float>(graph, {features, 4}, {.stddev = 0.3}),
                         VariableOptions{.name = "a"});
    weights.emplace_back(graph, random_normal<float>(graph, {4, 3}, {.stddev = 0.3}), VariableOptions{.name = "b"});
    loss = reduce_mean(square(matmul(tanh(matmul(x, weights[0])), weights[1]) - 0.25f));
    if (options) {
      sync.emplace(train::Adam(0.02f), *options);
      train = sync->minimize(loss);
    } else {
      train = train::Adam(0.02f).minimize(loss);
    }
    session.emplace(graph, SessionOptions{.devices = {device}});
  }
};

/// The chief's part beside training.
struct Leading {
  std::promise<Status> ended;
  std::jthread thread;

  Leading(const SyncReplicas& sync, Session& session)
      : thread([this, &sync, &session](const std::stop_token& stop) {
          Status status;
          try {
            sync.lead(session, stop);
          } catch (const Error& error) {
            status = error.status();
          }
          ended.set_value(status);
        }) {}
};

std::shared_ptr<Device> sync_device() {
  return std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(2, ThreadPoolOptions{.name = "sync"})});
}

/// The losses on all rows before each step, of one process.
std::vector<float> losses_alone(std::int64_t steps) {
  SyncModel model(sync_device(), std::nullopt);
  model.session->run(initialize_variables(model.graph));
  std::vector<float> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Tensor<float> all = sync_batch(step, 0, rows_in_all);
    losses.push_back(model.session->run({{model.x, all}}, model.loss, model.train).scalar());
  }
  return losses;
}

/// The same for `replicas` replicas, each with its part of the rows: the mean of their losses.
std::vector<float> losses_together(std::int64_t replicas, std::int64_t steps) {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < replicas; ++rank) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = replicas, .rank = rank}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  Leading leading(*models[0]->sync, *models[0]->session);
  std::vector<std::vector<float>> of(static_cast<std::size_t>(replicas));
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < replicas; ++rank) {
      threads.emplace_back([&, rank] {
        SyncModel& model = *models[static_cast<std::size_t>(rank)];
        model.sync->begin(*model.session);
        const std::int64_t part = rows_in_all / replicas;
        for (std::int64_t i = 0; i < steps; ++i) {
          const std::int64_t step = model.session->run(model.sync->local_step()).scalar();
          const Tensor<float> mine = sync_batch(step, rank * part, (rank + 1) * part);
          of[static_cast<std::size_t>(rank)].push_back(
              model.session->run({{model.x, mine}}, model.loss, model.train).scalar());
        }
        model.sync->leave(*model.session);
      });
    }
  }
  CHECK(leading.ended.get_future().get().ok());
  std::vector<float> mean(static_cast<std::size_t>(steps));
  for (std::size_t step = 0; step < mean.size(); ++step) {
    for (const auto& one : of) mean[step] += one[step] / static_cast<float>(replicas);
  }
  return mean;
}

}  // namespace

TEST_CASE("Synchronous training by one replica has the losses of training alone, bit for bit") {
  CHECK(losses_together(1, 12) == losses_alone(12));
}

TEST_CASE("Synchronous training by several replicas has the losses of training alone, to rounding") {
  const std::vector<float> alone = losses_alone(12);
  for (const std::int64_t replicas : {2, 3, 4}) {
    const std::vector<float> together = losses_together(replicas, 12);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      CAPTURE(replicas, i);
      CHECK(together[i] == Approx(alone[i]).epsilon(1e-4));
    }
    CHECK(losses_together(replicas, 12) == together);  // in any order of the replicas
  }
}

TEST_CASE("Rows of a table that replicas gather are updated as by one process") {
  const auto train_rows = [](std::int64_t replicas) {
    const auto device = sync_device();
    struct Replica {
      Graph graph;
      Output<std::int32_t> ids;
      std::optional<Variable<float>> table;
      std::optional<SyncReplicas> sync;
      Operation train;
      std::optional<Session> session;
    };
    std::vector<std::unique_ptr<Replica>> all;
    for (std::int64_t rank = 0; rank < replicas; ++rank) {
      Replica& one = *all.emplace_back(std::make_unique<Replica>());
      one.ids = placeholder<std::int32_t>(one.graph, {dynamic});
      one.table.emplace(one.graph, Tensor<float>::full({8, 2}, 1.0f), VariableOptions{.name = "table"});
      one.sync.emplace(train::GradientDescent(0.5f), SyncReplicasOptions{.replicas = replicas, .rank = rank});
      one.train = one.sync->minimize(reduce_mean(square(embedding_lookup(*one.table, one.ids))));
      one.session.emplace(one.graph, SessionOptions{.devices = {device}});
    }
    all[0]->session->run(initialize_variables(all[0]->graph));
    Leading leading(*all[0]->sync, *all[0]->session);
    const std::vector<std::int32_t> ids{1, 1, 5, 7};
    {
      std::vector<std::jthread> threads;
      for (std::int64_t rank = 0; rank < replicas; ++rank) {
        threads.emplace_back([&, rank] {
          Replica& one = *all[static_cast<std::size_t>(rank)];
          one.sync->begin(*one.session);
          const std::int64_t part = 4 / replicas;
          Tensor<std::int32_t> mine(Shape({part}));
          for (std::int64_t i = 0; i < part; ++i) mine(i) = ids[static_cast<std::size_t>(rank * part + i)];
          for (int step = 0; step < 3; ++step) one.session->run({{one.ids, mine}}, one.train);
          one.sync->leave(*one.session);
        });
      }
    }
    CHECK(leading.ended.get_future().get().ok());
    return all[0]->session->run(*all[0]->table);
  };
  const Tensor<float> alone = train_rows(1), together = train_rows(2);
  for (std::int64_t row = 0; row < 8; ++row) {
    CAPTURE(row);
    CHECK(together(row, 0) == Approx(alone(row, 0)).epsilon(1e-6));
    CHECK((alone(row, 0) != 1.0f) == (row == 1 || row == 5 || row == 7));
  }
}

namespace {

constexpr double clipped_norm = 0.05;

/// A table of rows and a factor, and the last norm of the gradients before they were clipped.
struct ClippedModel {
  Graph graph;
  Output<std::int32_t> ids = placeholder<std::int32_t>(graph, {dynamic});
  Variable<float> table{
      graph, Tensor<float>({8, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}), {.name = "table"}};
  Variable<float> factor{graph, 2.0f, {.name = "factor"}};
  Variable<float> norm{graph, 0.0f, {.name = "norm", .trainable = false}};
  Output<float> loss = reduce_mean(square(embedding_lookup(table, ids) * factor - 3.0f));
  std::optional<SyncReplicas> sync;
  Operation train;
  std::optional<Session> session;

  std::vector<train::GradientAndVariable> clipped(std::vector<train::GradientAndVariable> gradients) {
    const Operation looked = norm.assign(Output<float>(train::global_norm(gradients)));
    const auto after = graph.control_dependencies({looked});
    return train::clip_by_global_norm(std::move(gradients), clipped_norm);
  }
  std::vector<float> values() {
    std::vector<float> all;
    for (const Variable<float>& each : {table, factor, norm}) {
      const Tensor<float> value = session->run(each);
      all.insert(all.end(), value.begin(), value.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("The mean gradients of replicas in step may be clipped and looked at before they are applied") {
  constexpr int steps = 4;
  const std::vector<std::int32_t> ids{1, 4, 5, 7};
  ClippedModel alone;
  const train::GradientDescent descent(0.5f);
  alone.train = descent.apply_gradients(alone.clipped(descent.compute_gradients(alone.loss)));
  alone.session.emplace(alone.graph);
  alone.session->run(initialize_variables(alone.graph));
  for (int i = 0; i < steps; ++i) {
    alone.session->run({{alone.ids, Tensor<std::int32_t>({4}, {1, 4, 5, 7})}}, alone.train);
  }
  const std::vector<float> wanted = alone.values();
  CHECK(wanted.back() > clipped_norm);
  for (const std::int64_t replicas : {1, 2}) {
    const auto device = sync_device();
    std::vector<std::unique_ptr<ClippedModel>> all;
    for (std::int64_t rank = 0; rank < replicas; ++rank) {
      ClippedModel& one = *all.emplace_back(std::make_unique<ClippedModel>());
      one.sync.emplace(descent, SyncReplicasOptions{.replicas = replicas, .rank = rank});
      one.train = one.sync->minimize(one.loss,
                                     {.change = [&one](auto gradients) { return one.clipped(std::move(gradients)); }});
      one.session.emplace(one.graph, SessionOptions{.devices = {device}});
    }
    all[0]->session->run(initialize_variables(all[0]->graph));
    Leading leading(*all[0]->sync, *all[0]->session);
    {
      std::vector<std::jthread> threads;
      for (std::int64_t rank = 0; rank < replicas; ++rank) {
        threads.emplace_back([&, rank] {
          ClippedModel& one = *all[static_cast<std::size_t>(rank)];
          one.sync->begin(*one.session);
          const std::int64_t part = 4 / replicas;
          Tensor<std::int32_t> mine(Shape({part}));
          for (std::int64_t i = 0; i < part; ++i) mine(i) = ids[static_cast<std::size_t>(rank * part + i)];
          for (int i = 0; i < steps; ++i) one.session->run({{one.ids, mine}}, one.train);
          one.sync->leave(*one.session);
        });
      }
    }
    CHECK(leading.ended.get_future().get().ok());
    const std::vector<float> got = all[0]->values();
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-5));
  }
}

TEST_CASE("A gradient that is left out is taken all the same") {
  SyncModel model(sync_device(), std::nullopt);
  SyncReplicas sync(train::GradientDescent(0.1f), {});
  const Operation train = sync.minimize(model.loss, {.change = [](auto gradients) {
                                          gradients.resize(1);
                                          return gradients;
                                        }});
  model.session->run(initialize_variables(model.graph));
  const Tensor<float> before = model.session->run(model.weights[1]), first = model.session->run(model.weights[0]);
  Leading leading(sync, *model.session);
  sync.begin(*model.session);
  for (int i = 0; i < 3; ++i) model.session->run({{model.x, sync_batch(i, 0, rows_in_all)}}, train);
  CHECK(model.session->run(sync.global_step()).scalar() == 3);
  const Tensor<float> after = model.session->run(model.weights[1]);
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
  CHECK(model.session->run(model.weights[0])(0, 0) != first(0, 0));
  sync.leave(*model.session);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("With backup replicas a step takes the first, and drops what comes later") {
  const auto device = sync_device();
  const SyncReplicasOptions options{.aggregate = 2, .replicas = 3};
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    SyncReplicasOptions own = options;
    own.rank = rank;
    models.push_back(std::make_unique<SyncModel>(device, own));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  Leading leading(*models[0]->sync, *models[0]->session);
  const auto step = [&](std::size_t rank) {
    models[rank]->session->run({{models[rank]->x, sync_batch(0, 0, 3)}}, models[rank]->train);
    return models[rank]->session->run(models[rank]->sync->local_step()).scalar();
  };
  for (const auto& model : models) model->sync->begin(*model->session);
  for (std::int64_t i = 1; i <= 3; ++i) {
    auto other = std::async(std::launch::async, [&] { return step(0); });
    CHECK(step(1) == i);
    CHECK(other.get() == i);
  }
  // The third replica is three steps behind: its gradient is dropped, and it goes on with the step of the others.
  CHECK(step(2) == 3);
  CHECK(models[0]->session->run(models[0]->sync->global_step()).scalar() == 3);
  auto other = std::async(std::launch::async, [&] { return step(0); });
  CHECK(step(2) == 4);
  CHECK(other.get() == 4);
  for (const auto& model : models) model->sync->leave(*model->session);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("A replica that ends early stalls nobody") {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = 3, .rank = rank}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  Leading leading(*models[0]->sync, *models[0]->session);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        SyncModel& model = *models[static_cast<std::size_t>(rank)];
        model.sync->begin(*model.session);
        for (std::int64_t i = 0; i < 4 * (rank + 1); ++i) {
          model.session->run({{model.x, sync_batch(i, 0, 4)}}, model.train);
        }
        model.sync->leave(*model.session);
      });
    }
  }
  CHECK(leading.ended.get_future().get().ok());
  CHECK(models[0]->session->run(models[0]->sync->global_step()).scalar() == 12);
}

TEST_CASE("Replicas that are late are dropped, or named to all, as was asked") {
  for (const LateReplicas late : {LateReplicas::drop, LateReplicas::fail}) {
    const auto device = sync_device();
    std::vector<std::unique_ptr<SyncModel>> models;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      models.push_back(std::make_unique<SyncModel>(
          device, SyncReplicasOptions{.replicas = 3,
                                      .rank = rank,
                                      .patience = std::chrono::milliseconds(late == LateReplicas::fail ? 1500 : 100),
                                      .late = late}));
    }
    models[0]->session->run(initialize_variables(models[0]->graph));
    Leading leading(*models[0]->sync, *models[0]->session);
    SyncModel& worker = *models[1];
    worker.sync->begin(*worker.session);
    const auto step = [&](SyncModel& one) { one.session->run({{one.x, sync_batch(0, 0, 3)}}, one.train); };
    if (late == LateReplicas::fail) {
      CHECK_THROWS_WITH(step(worker), Catch::Contains("replicas 0, 2 have not arrived at step 0"));
      CHECK(leading.ended.get_future().get().code() == Code::deadline_exceeded);
      continue;
    }
    for (int i = 0; i < 3; ++i) step(worker);
    // One of them comes after all, and is waited for again.
    SyncModel& back = *models[2];
    back.sync->begin(*back.session);
    auto other = std::async(std::launch::async, [&] { step(worker); });
    step(back);
    other.get();
    CHECK(worker.session->run(worker.sync->global_step()).scalar() >= 4);
    worker.sync->leave(*worker.session);
    back.sync->leave(*back.session);
    CHECK(leading.ended.get_future().get().ok());
  }
}

TEST_CASE("A replica that brings no gradients is named by a line, also without a patience") {
  const auto device = sync_device();
  const auto clock = std::make_shared<VirtualClock>();
  SyncModel chief(device, SyncReplicasOptions{.replicas = 2, .rank = 0});
  chief.session.emplace(chief.graph, SessionOptions{.devices = {device}, .clock = clock});
  chief.session->run(initialize_variables(chief.graph));
  std::atomic<bool> is_named{false};
  std::jthread lead([&, options = chief.sync->supervised({})](const std::stop_token& stop) {
    const std::function<void()> save;
    const std::function<void(std::string_view)> say = [&](std::string_view line) {
      if (line == "still waits for the gradients of replicas 1") is_named = true;  // before, perhaps of 0 and 1
    };
    const std::stop_token ends;
    try {
      options.lead({*chief.session, stop, save, say, ends});
    } catch (const Error&) {  // the end of the test
    }
  });
  chief.sync->begin(*chief.session);
  std::stop_source ends;
  std::promise<Status> ended;
  chief.session->run_async(RunOptions{.stop = ends.get_token()}, {{chief.x, sync_batch(0, 0, rows_in_all)}},
                           chief.train, [&](Status status) { ended.set_value(std::move(status)); });
  while (!is_named) {
    clock->advance(std::chrono::seconds(1));
    std::this_thread::yield();
  }
  lead.request_stop();
  lead.join();
  ends.request_stop();
  CHECK_FALSE(ended.get_future().get().ok());
}

TEST_CASE("A leader that stops tells those who wait, and another one goes on where the variables are") {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = 2, .rank = rank}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  const auto step = [&](SyncModel& one) { one.session->run({{one.x, sync_batch(0, 0, 6)}}, one.train); };
  {
    Leading leading(*models[0]->sync, *models[0]->session);
    models[1]->sync->begin(*models[1]->session);
    auto waits = std::async(std::launch::async, [&] { return code_of([&] { step(*models[1]); }); });
    leading.thread.request_stop();
    CHECK(waits.get() == Code::aborted);
    CHECK(leading.ended.get_future().get().ok());
  }
  Leading leading(*models[0]->sync, *models[0]->session);
  for (const auto& model : models) model->sync->begin(*model->session);
  auto other = std::async(std::launch::async, [&] { step(*models[0]); });
  step(*models[1]);
  other.get();
  CHECK(models[0]->session->run(models[0]->sync->global_step()).scalar() == 1);
  for (const auto& model : models) model->sync->leave(*model->session);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("A replica that waits for somebody to lead ends when it is stopped, and another one goes on waiting") {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = 2, .rank = rank}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] {
    return code_of([&] { models[0]->sync->begin(*models[0]->session, stop.get_token()); });
  });
  auto waiting = std::async(std::launch::async, [&] { models[1]->sync->begin(*models[1]->session); });
  stop.request_stop();
  CHECK(stopped.get() == Code::cancelled);
  Leading leading(*models[0]->sync, *models[0]->session);
  waiting.get();
  for (const auto& model : models) model->sync->leave(*model->session);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("Of two that lead one is told so, and the other one goes on undisturbed") {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = 2, .rank = rank}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  struct Leader {
    std::unique_ptr<Leading> leading;
    std::future<Status> ended;
  };
  const auto lead_with = [](SyncModel& model) {
    auto leading = std::make_unique<Leading>(*model.sync, *model.session);
    auto ended = leading->ended.get_future();
    return Leader{std::move(leading), std::move(ended)};
  };
  const auto has_ended = [](const Leader& leader) {
    return leader.ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  Leader leader = lead_with(*models[0]);
  for (const auto& model : models) model->sync->begin(*model->session);
  const auto step = [&](SyncModel& one) { one.session->run({{one.x, sync_batch(0, 0, 6)}}, one.train); };
  const auto step_both = [&] {
    auto other = std::async(std::launch::async, [&] { step(*models[0]); });
    step(*models[1]);
    other.get();
  };
  step_both();
  for (int round = 0; round < 3; ++round) {
    Leader other = lead_with(*models[static_cast<std::size_t>(round % 2)]);
    while (!has_ended(leader) && !has_ended(other)) std::this_thread::yield();
    if (has_ended(leader)) std::swap(leader, other);
    CHECK(other.ended.get().code() == Code::already_exists);
    step_both();
  }
  CHECK(models[0]->session->run(models[0]->sync->global_step()).scalar() == 4);
  for (const auto& model : models) model->sync->leave(*model->session);
  CHECK(leader.ended.get().ok());
}

TEST_CASE("Three processes of one rank count as one replica") {
  const auto device = sync_device();
  std::vector<std::unique_ptr<SyncModel>> models;
  for (int i = 0; i < 4; ++i) {
    models.push_back(std::make_unique<SyncModel>(device, SyncReplicasOptions{.replicas = 2, .rank = i == 0 ? 0 : 1}));
  }
  models[0]->session->run(initialize_variables(models[0]->graph));
  Leading leading(*models[0]->sync, *models[0]->session);
  for (const auto& model : models) model->sync->begin(*model->session);
  constexpr std::int64_t num_steps = 20;
  std::vector<Code> ends(models.size()), left(models.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(models.size());
    for (std::size_t i = 0; i < models.size(); ++i) {
      threads.emplace_back([&model = *models[i], &end = ends[i], &leave = left[i]] {
        const auto step = [&] { return model.session->run(model.sync->local_step()).scalar(); };
        end = code_of([&] {
          while (step() < num_steps) model.session->run({{model.x, sync_batch(0, 0, 3)}}, model.train);
        });
        leave = code_of([&] { model.sync->leave(*model.session); });
      });
    }
  }
  // Replicas of one rank share a local step here: one of them may be a step further when the others have left.
  for (const Code end : ends) CHECK((end == Code::ok || end == Code::out_of_range));
  // A replica that leaves while another replica of its rank goes on gets an error.
  CHECK(left[0] == Code::ok);
  for (const Code code : left) CHECK((code == Code::ok || code == Code::already_exists));
  CHECK(models[0]->session->run(models[0]->sync->global_step()).scalar() >= num_steps);
  CHECK(leading.ended.get_future().get().ok());
}

TEST_CASE("A graph may train two models synchronously, each with a leader of its own") {
  const auto device = sync_device();
  Graph graph;
  const Variable<float> a(graph, 1.0f, {.name = "a"}), b(graph, 1.0f, {.name = "b"});
  SyncReplicas first(train::GradientDescent(0.25f), SyncReplicasOptions{});
  SyncReplicas second(train::GradientDescent(0.25f), SyncReplicasOptions{});
  const Operation train_first = first.minimize(square(a * 1.0f));
  const Operation train_second = second.minimize(square(b * 1.0f));
  Session session(graph, {.devices = {device}});
  session.run(initialize_variables(graph));
  Leading leading_first(first, session), leading_second(second, session);
  first.begin(session);
  second.begin(session);
  for (int i = 0; i < 2; ++i) session.run(train_first);
  session.run(train_second);
  CHECK(session.run(a).scalar() == 0.25f);
  CHECK(session.run(b).scalar() == 0.5f);
  CHECK(session.run(first.global_step()).scalar() == 2);
  CHECK(session.run(second.global_step()).scalar() == 1);
  first.leave(session);
  second.leave(session);
  CHECK(leading_first.ended.get_future().get().ok());
  CHECK(leading_second.ended.get_future().get().ok());
}

TEST_CASE("Options that make no sense, and calls in the wrong order, are refused") {
  CHECK(code_of([] { SyncReplicas(train::Adam(1e-3f), {.replicas = 0}); }) == Code::invalid_argument);
  CHECK(code_of([] { SyncReplicas(train::Adam(1e-3f), {.aggregate = 3, .replicas = 2}); }) == Code::invalid_argument);
  CHECK(code_of([] { SyncReplicas(train::Adam(1e-3f), {.replicas = 2, .rank = 2}); }) == Code::invalid_argument);
  SyncModel model(sync_device(), SyncReplicasOptions{});
  CHECK(code_of([&] { model.sync->minimize(model.loss); }) == Code::failed_precondition);
  const SyncReplicas none(train::Adam(1e-3f), SyncReplicasOptions{});
  CHECK(code_of([&] { none.begin(*model.session); }) == Code::failed_precondition);
  CHECK(code_of([&] { none.global_step(); }) == Code::failed_precondition);
  // Before it has begun a replica has no step.
  model.session->run(initialize_variables(model.graph));
  CHECK(code_of([&] {
          model.session->run({{model.x, sync_batch(0, 0, 3)}}, model.train);
        }) == Code::failed_precondition);
}

TEST_CASE("A replica's bad gradients skip the step of all under a loss scale, and training goes on") {
  const auto device = sync_device();
  struct Replica {
    Graph graph;
    Output<float> slope = placeholder<float>(graph, {});
    Variable<float> w{graph, Tensor<float>::full({2}, 1), {.name = "w"}};
    Variable<Half> narrow{graph, Tensor<Half>::full({2}, Half(1.0f)), {.name = "narrow"}};
    Variable<float> table{graph, Tensor<float>::full({3, 1}, 1), {.name = "table"}};
    train::LossScaleOptimizer optimizer{train::Momentum(0.25, 0.5), train::LossScale::dynamic({.initial = 64})};
    std::optional<SyncReplicas> sync;
    Operation train;
    std::optional<Session> session;
  };
  std::vector<std::unique_ptr<Replica>> all;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Replica& one = *all.emplace_back(std::make_unique<Replica>());
    one.sync.emplace(one.optimizer, SyncReplicasOptions{.replicas = 2, .rank = rank});
    const auto rows = reduce_sum(gather(one.table, constant<std::int32_t>(one.graph, {2})));
    one.train = one.sync->minimize((reduce_sum(one.w) + reduce_sum(cast<float>(one.narrow)) + rows) * one.slope);
    one.session.emplace(one.graph, SessionOptions{.devices = {device}});
  }
  all[0]->session->run(initialize_variables(all[0]->graph));
  Leading leading(*all[0]->sync, *all[0]->session);
  const float bad = std::numeric_limits<float>::infinity();
  const float slopes[2][4] = {{1, 2, 1, 2}, {3, bad, 1, 2}};
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Replica& one = *all[rank];
        one.sync->begin(*one.session);
        for (const float slope : slopes[rank]) one.session->run({{one.slope, slope}}, one.train);
        one.sync->leave(*one.session);
      });
    }
  }
  CHECK(leading.ended.get_future().get().ok());
  // Mean slopes of 2, 1, 2 without the skipped one: accum 2, 2, 3.
  const Replica& chief = *all[0];
  const auto [w, narrow, table, scale, good] =
      all[0]->session->run(chief.w, chief.narrow, chief.table, chief.optimizer.scale(), chief.optimizer.good_steps());
  CHECK(w(1) == 1.0f - 0.25f * 7);
  CHECK(static_cast<float>(narrow(0)) == 1.0f - 0.25f * 7);
  CHECK(table(2, 0) == 1.0f - 0.25f * 7);
  CHECK(table(0, 0) == 1.0f);
  CHECK(scale.scalar() == 32);
  CHECK(good.scalar() == 2);
  CHECK(all[0]->session->run(chief.sync->global_step()).scalar() == 4);
}

TEST_CASE("Moving averages of replicas that train in step are of the replicas whose gradients count") {
  // Four rows of two channels; the batch's means are `of` and `of` + 1.
  const auto batch = [](float of) {
    return Tensor<float>({4, 2}, {of - 1, of, of + 1, of + 2, of - 3, of + 1, of + 3, of + 1});
  };
  struct Normalised {
    Graph graph;
    Output<float> x;
    BatchNormalization norm{{.momentum = 0.5}};
    std::optional<SyncReplicas> sync;
    Operation train;
    std::optional<Session> session;

    Normalised(const std::shared_ptr<Device>& device, const SyncReplicasOptions& options) {
      x = placeholder<float>(graph, {dynamic, 2});
      sync.emplace(train::GradientDescent(0.1f), options);
      train = sync->minimize(reduce_mean(square(norm(x, Training(true)) - 1.0f)));
      session.emplace(graph, SessionOptions{.devices = {device}});
    }
    std::vector<float> averages() {
      const auto [mean, variance] =
          std::tuple(session->run(Output<float>::unchecked(norm.moving_mean().read_edge())),
                     session->run(Output<float>::unchecked(norm.moving_variance().read_edge())));
      return {mean(0), mean(1), variance(0), variance(1)};
    }
  };
  for (const std::int64_t aggregate : {1, 2}) {
    const auto device = sync_device();
    std::vector<std::unique_ptr<Normalised>> models;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      models.push_back(std::make_unique<Normalised>(
          device, SyncReplicasOptions{.aggregate = aggregate, .replicas = 2, .rank = rank}));
    }
    models[0]->session->run(initialize_variables(models[0]->graph));
    Leading leading(*models[0]->sync, *models[0]->session);
    for (const auto& model : models) model->sync->begin(*model->session);
    const auto step = [&](std::size_t rank) {
      Normalised& model = *models[rank];
      model.session->run({{model.x, batch(rank == 0 ? 4.0f : 8.0f)}}, model.train);
    };
    if (aggregate == 2) {
      auto other = std::async(std::launch::async, [&] { step(1); });
      step(0);
      other.get();
    } else {
      step(0);
      step(1);  // too late for the step that replica 0 has made
    }
    const float mean = aggregate == 2 ? 6.0f : 4.0f;
    // Half of the first values, 0 and 1, and half of the batch's means and unbiased variances.
    const std::vector<float> expected{mean / 2, (mean + 1) / 2, (1 + 20.0f / 3) / 2, (1 + 2.0f / 3) / 2};
    const std::vector<float> averages = models[0]->averages();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(averages[i] == Approx(expected[i]).epsilon(1e-5));
    for (const auto& model : models) model->sync->leave(*model->session);
    CHECK(leading.ended.get_future().get().ok());
  }
}
