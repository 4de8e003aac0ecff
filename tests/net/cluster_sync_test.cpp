#include <dflow/train/replicas/sync_replicas.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/net/server.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster_harness.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

constexpr std::int64_t rows_per_step = 12, row_features = 4;

/// The rows from `begin` to `end` of all replicas' training data of step `step`.
df::Tensor<float> rows_of_step(std::int64_t step, std::int64_t begin, std::int64_t end) {
  df::Tensor<float> rows({end - begin, row_features});
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < row_features; ++i) {
      rows((row - begin), i) = std::sin(static_cast<float>(3 + step * 101 + row * 13 + i * 5));
    }
  }
  return rows;
}

/// A perceptron that is placed as `place` says, with the optimizer of a replica, or alone.
struct SyncedModel {
  SyncedModel(const df::DeviceFunction& place, const std::optional<df::train::SyncReplicasOptions>& options)
      : graph({.seed = 5}) {
    const auto on = graph.device(place);
    x = df::placeholder<float>(graph, {df::dynamic, row_features});
    const auto hidden = df::dense(x, 6, {.activation = df::Activation::tanh});
    loss = df::reduce_mean(df::square(df::dense(hidden, 3) - 0.25f));
    weights = df::trainable_variables(graph);
    if (options) {
      sync.emplace(df::train::Adam(0.03f), *options);
      train = sync->minimize(loss);
    } else {
      train = df::train::Adam(0.03f).minimize(loss);
    }
  }
  std::vector<float> values(df::Session& session) const {
    std::vector<float> all;
    for (const df::AnyVariable& weight : weights) {
      const df::Tensor<float> value = session.run(weight.as<float>().read());
      all.insert(all.end(), value.begin(), value.end());
    }
    return all;
  }

  df::Graph graph;
  df::Output<float> x, loss;
  std::vector<df::AnyVariable> weights;
  df::Operation train;
  std::optional<df::train::SyncReplicas> sync;
};

std::vector<float> trained_alone(std::int64_t steps) {
  SyncedModel model([](const df::Node&) { return std::string(); }, std::nullopt);
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  for (std::int64_t step = 0; step < steps; ++step) {
    session.run({{model.x, rows_of_step(step, 0, rows_per_step)}}, model.train);
  }
  return model.values(session);
}

struct SyncedCluster {
  SyncedCluster(int ps, int workers) : num_workers(workers), cluster({{"ps", ps}, {"worker", workers}}) {
    for (int task = 0; task < ps; ++task) give_files(cluster.server("ps", task));
    for (int task = 0; task < workers; ++task) give_files(cluster.server("worker", task));
  }
  void give_files(df::net::Server& server) const {
    for (const auto& device : server.devices()) df::set_device_files(device->context(), files);
  }

  /// The values of the variables after `steps` steps of all workers in step. The chief calls `at_step(step)` before
  /// each step and `after_step(step)` after it. `last_of(worker)` is the step at which a worker ends, if earlier.
  std::vector<float> trained(std::int64_t steps, const std::function<void(std::int64_t)>& at_step = nullptr,
                             const std::function<std::int64_t(int)>& last_of = nullptr,
                             const std::function<void(std::int64_t)>& after_step = nullptr) {
    std::vector<float> values;
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < num_workers; ++worker) {
      const df::net::ClusterSpec spec = cluster.spec_of("worker", worker);
      const auto target = cluster.server("worker", worker).target({"/job:ps"});
      const std::int64_t last = last_of ? last_of(worker) : steps;
      threads.emplace_back([this, &values, &at_step, &after_step, steps, last, worker, spec, target] {
        SyncedModel model(df::train::replica_device(spec),
                          df::train::SyncReplicasOptions{.replicas = num_workers, .rank = worker});
        df::train::Supervisor supervisor(model.graph,
                                         model.sync->supervised({.session = {.target = target},
                                                                 .is_chief = worker == 0,
                                                                 .checkpoint_dir = "/models",
                                                                 .saver_options = {.files = files},
                                                                 .save_every_steps = 3,
                                                                 .poll_interval = std::chrono::milliseconds(2)}));
        const std::int64_t part = rows_per_step / num_workers;
        model.sync->train(supervisor, steps, [&](df::Session& session, std::int64_t step) {
          if (step == last) return false;  // there is no more data
          if (worker == 0 && at_step) at_step(step);
          session.run({{model.x, rows_of_step(step, worker * part, (worker + 1) * part)}}, model.train);
          if (worker == 0 && after_step) after_step(step);
          return true;
        });
        if (worker == 0) values = supervisor.run([&](df::Session& session) { return model.values(session); });
        model.sync->finish(supervisor);
      });
    }
    threads.clear();
    return values;
  }

  int num_workers;
  std::shared_ptr<df::MemoryFileSystem> files = std::make_shared<df::MemoryFileSystem>();
  MemoryCluster cluster;
};

}  // namespace

TEST_CASE("one worker in step with its parameter server trains as one process does, bit for bit") {
  CHECK(SyncedCluster(1, 1).trained(8) == trained_alone(8));
}

TEST_CASE("several workers in step over parameter servers train as one process does, to rounding, each time alike") {
  const std::vector<float> alone = trained_alone(8);
  for (const int workers : {2, 3}) {
    const std::vector<float> together = SyncedCluster(2, workers).trained(8);
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[i] == Approx(alone[i]).margin(2e-3));
    CHECK(SyncedCluster(2, workers).trained(8) == together);
  }
}

TEST_CASE("a parameter server that is started anew meanwhile changes nothing of what comes out") {
  const std::vector<float> undisturbed = SyncedCluster(2, 3).trained(14);
  SyncedCluster disturbed(2, 3);
  std::vector<int> restarts{0, 0, 0};
  const std::vector<float> values = disturbed.trained(14, [&](std::int64_t step) {
    // Each of them once: in the middle, right after a checkpoint, and the first steps again.
    constexpr std::int64_t when[] = {2, 7, 10};
    for (std::size_t i = 0; i < 3; ++i) {
      if (step != when[i] || restarts[i] > 0) continue;
      ++restarts[i];
      const int task = static_cast<int>(i % 2);
      disturbed.cluster.stop("ps", task);
      disturbed.give_files(disturbed.cluster.start("ps", task));
    }
  });
  CHECK(restarts == std::vector<int>{1, 1, 1});
  CHECK(values == undisturbed);
}

TEST_CASE("steps that are lost when a parameter server dies at the end are made again by all") {
  for (const std::int64_t steps : {12, 13}) {  // with a checkpoint due after the last one, and without
    const std::vector<float> undisturbed = SyncedCluster(2, 3).trained(steps);
    for (int task = 0; task < 2; ++task) {
      SyncedCluster disturbed(2, 3);
      int restarts = 0;
      const std::vector<float> values = disturbed.trained(steps, nullptr, nullptr, [&](std::int64_t step) {
        if (step != steps - 1 || ++restarts > 2) return;
        disturbed.cluster.stop("ps", task);
        disturbed.give_files(disturbed.cluster.start("ps", task));
      });
      // One restart each time the last step is made. There are fewer restarts if the other workers leave, and so save,
      // before the chief stops the task.
      CHECK(restarts >= 1);
      CHECK(restarts <= 3);
      CHECK(values == undisturbed);
    }
  }
}

TEST_CASE("a replica that has ended is not waited for when the barrier's parameter server is started anew") {
  const auto last_of = [](int worker) { return worker == 2 ? 3 : 14; };
  const std::vector<float> undisturbed = SyncedCluster(1, 3).trained(14, nullptr, last_of);
  SyncedCluster disturbed(1, 3);
  bool has_restarted = false;
  const std::vector<float> values = disturbed.trained(
      14,
      [&](std::int64_t step) {
        if (step < 10 || std::exchange(has_restarted, true)) return;
        disturbed.cluster.stop("ps", 0);
        disturbed.give_files(disturbed.cluster.start("ps", 0));
      },
      last_of);
  CHECK(has_restarted);
  CHECK(values == undisturbed);
}

TEST_CASE("a replica waits for parameter servers that do not come as long as its model may take to be ready") {
  SyncedCluster synced(1, 1);
  MemoryCluster& cluster = synced.cluster;
  cluster.stop("ps", 0);
  SyncedModel model(df::train::replica_device(cluster.spec_of("worker", 0)),
                    df::train::SyncReplicasOptions{.replicas = 1, .rank = 0});
  df::SessionOptions session{.target = cluster.server("worker", 0).target({"/job:ps"})};
  session.startup_timeout = std::chrono::hours(1);  // or the server's
  for (const bool is_chief : {true, false}) {
    df::train::Supervisor supervisor(
        model.graph, model.sync->supervised(
                         {.session = session, .is_chief = is_chief, .ready_timeout = std::chrono::milliseconds(300)}));
    const df::Status status = status_of([&] { supervisor.session(); });
    CHECK(status.code() == df::Code::deadline_exceeded);
    CHECK_THAT(status.to_string(), Catch::Contains("/job:ps/replica:0/task:0"));
  }
}

TEST_CASE("a replica that is told to stop while it looks for the parameter servers leaves when they are there") {
  SyncedCluster synced(1, 2);
  MemoryCluster& cluster = synced.cluster;
  cluster.stop("ps", 0);
  std::stop_source stop;
  std::atomic<bool> is_begun{false};
  std::jthread stopped([&] {
    const df::net::ClusterSpec spec = cluster.spec_of("worker", 1);
    SyncedModel model(df::train::replica_device(spec), df::train::SyncReplicasOptions{.replicas = 2, .rank = 1});
    const auto target = cluster.server("worker", 1).target({"/job:ps"});
    df::train::Supervisor supervisor(
        model.graph,
        model.sync->supervised({.session = {.target = target}, .is_chief = false, .stop = stop.get_token()}));
    is_begun = true;
    model.sync->train(supervisor, 5, [](df::Session&, std::int64_t) {});
  });
  while (!is_begun) std::this_thread::yield();
  stop.request_stop();
  cluster.start("ps", 0);
  stopped.join();
  SyncedModel model(df::train::replica_device(cluster.spec_of("worker", 0)),
                    df::train::SyncReplicasOptions{.replicas = 2, .rank = 0});
  const auto target = cluster.server("worker", 0).target({"/job:ps"});
  df::train::Supervisor supervisor(model.graph, model.sync->supervised({.session = {.target = target}}));
  int steps = 0;
  model.sync->train(supervisor, 5, [&](df::Session& session, std::int64_t step) {
    session.run({.deadline = std::chrono::seconds(20)}, {{model.x, rows_of_step(step, 0, 6)}}, model.train);
    ++steps;
  });
  CHECK(steps == 5);
  model.sync->finish(supervisor);
}
