// Replicas that come late, end early, die and come again, while others train on.
#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "cluster_harness.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// A replica that trains one variable on the parameter server, in step or with bounded staleness.
template <class Replicas, class Options>
struct MemberModel {
  MemberModel(const df::net::ClusterSpec& spec, const Options& options) {
    const auto on = graph.device(df::train::replica_device(spec));
    weight.emplace(graph, 1.0f, df::VariableOptions{.name = "weight"});
    replicas.emplace(df::train::GradientDescent(0.01), options);
    train = replicas->minimize(df::square(*weight * 1.0f));
  }
  df::train::SupervisorOptions supervised(const df::net::ClusterSpec& spec,
                                          const std::shared_ptr<df::SessionTarget>& target) const {
    return replicas->supervised(
        {.session = {.target = target}, .is_chief = spec.is_chief(), .poll_interval = std::chrono::milliseconds(2)});
  }
  std::int64_t step(df::train::Supervisor& supervisor) {
    return supervisor.run([&](df::Session& session) {
      session.run(train);
      return session.run(replicas->global_step()).scalar();
    });
  }

  df::Graph graph;
  std::optional<df::Variable<float>> weight;
  std::optional<Replicas> replicas;
  df::Operation train;
};

template <class Replicas, class Options>
void train_with_a_changing_member(Options options) {
  using Model = MemberModel<Replicas, Options>;
  options.replicas = 3;
  options.patience = std::chrono::milliseconds(300);
  MemoryCluster cluster({{"ps", 1}, {"worker", 3}});
  cluster.stop("worker", 2);
  std::atomic<std::int64_t> progress{0};
  std::atomic<bool> is_over{false};
  std::atomic<int> num_recoveries{0};
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < 2; ++worker) {
    const df::net::ClusterSpec spec = cluster.spec_of("worker", worker);
    const auto target = cluster.server("worker", worker).target({"/job:ps"});
    threads.emplace_back([&, worker, spec, target] {
      Options own = options;
      own.rank = worker;
      Model model(spec, own);
      df::train::Supervisor supervisor(model.graph, model.supervised(spec, target));
      while (!is_over) {
        const std::int64_t step = model.step(supervisor);
        if (worker == 0) progress = step;
      }
      model.replicas->finish(supervisor);
      num_recoveries += supervisor.num_recoveries();
    });
  }
  const auto wait_for_steps = [&](std::int64_t count) {
    for (const std::int64_t wanted = progress + count; progress < wanted;) std::this_thread::yield();
  };
  wait_for_steps(4);
  // It comes late and leaves, comes again as another process and dies, and once more.
  for (const bool leaves : {true, false, true}) {
    df::net::Server& server = cluster.start("worker", 2);
    {
      const df::net::ClusterSpec spec = cluster.spec_of("worker", 2);
      Options own = options;
      own.rank = 2;
      Model model(spec, own);
      df::train::Supervisor supervisor(model.graph, model.supervised(spec, server.target({"/job:ps"})));
      std::int64_t last = -1;
      for (int i = 0; i < 5; ++i) {
        const std::int64_t step = model.step(supervisor);
        CHECK(step > last);
        last = step;
      }
      if (leaves) model.replicas->finish(supervisor);
    }
    cluster.stop("worker", 2);
    wait_for_steps(4);
  }
  is_over = true;
  threads.clear();
  if (std::is_same_v<Replicas, df::train::SyncReplicas>) CHECK(num_recoveries == 0);
}

}  // namespace

TEST_CASE("A worker that comes late, leaves, dies and comes again trains in step with the others") {
  train_with_a_changing_member<df::train::SyncReplicas>(df::train::SyncReplicasOptions{});
}

TEST_CASE("A worker that comes late, leaves, dies and comes again trains with bounded staleness") {
  train_with_a_changing_member<df::train::StaleSyncReplicas>(df::train::StaleSyncReplicasOptions{.staleness = 2});
}

TEST_CASE("What an old process of a rank has computed is not applied when a new one has begun") {
  using Model = MemberModel<df::train::StaleSyncReplicas, df::train::StaleSyncReplicasOptions>;
  MemoryCluster cluster({{"ps", 1}, {"worker", 2}});
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<df::Session>> sessions;
  for (int worker = 0; worker < 2; ++worker) {  // two tasks that both say they are replica 0
    models.push_back(std::make_unique<Model>(cluster.spec_of("worker", worker), df::train::StaleSyncReplicasOptions{}));
    sessions.push_back(std::make_unique<df::Session>(
        models.back()->graph, df::SessionOptions{.target = cluster.server("worker", worker).target({"/job:ps"})}));
  }
  sessions[0]->run(df::initialize_variables(models[0]->graph));
  models[0]->replicas->begin(*sessions[0]);
  sessions[0]->run(models[0]->train);
  models[1]->replicas->begin(*sessions[1]);
  CHECK(code_of([&] { sessions[0]->run(models[0]->train); }) == df::Code::aborted);
  sessions[1]->run(models[1]->train);
  CHECK(sessions[1]->run(models[1]->replicas->global_step()).scalar() == 2);
}
