#include <dflow/train/metrics.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster_harness.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

struct ScoredRows {
  df::Tensor<bool> labels = df::Tensor<bool>({100});
  df::Tensor<float> scores = df::Tensor<float>({100});
};

std::vector<ScoredRows> scored_batches() {
  std::vector<ScoredRows> batches(9);
  std::uint32_t state = 7;
  for (ScoredRows& batch : batches) {
    for (std::int64_t i = 0; i < 100; ++i) {
      batch.scores(i) = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
      batch.labels(i) =
          (state = state * 1664525u + 1013904223u) >> 8 < static_cast<std::uint32_t>(batch.scores(i) * 16777216.0f);
    }
  }
  return batches;
}

/// Three metrics of labels and scores.
struct ScoreMetrics {
  explicit ScoreMetrics(df::Graph& graph)
      : labels(df::placeholder<bool>(graph, {df::dynamic})),
        scores(df::placeholder<float>(graph, {df::dynamic})),
        all{df::metrics::auc(labels, scores), df::metrics::recall(labels, scores > 0.5f), df::metrics::mean(scores)},
        update(df::group({all[0].update, all[1].update, all[2].update})) {}

  void add(df::Session& session, const ScoredRows& rows) const {
    session.run({{labels, rows.labels}, {scores, rows.scores}}, update);
  }

  df::Output<bool> labels;
  df::Output<float> scores;
  std::vector<df::metrics::StreamingMetric> all;
  df::Operation update;
};

/// Values over all batches, in one task.
std::vector<double> values_alone() {
  df::Graph graph;
  const ScoreMetrics metrics(graph);
  df::Session session(graph);
  session.run(df::initialize_local_variables(graph));
  for (const ScoredRows& rows : scored_batches()) metrics.add(session, rows);
  std::vector<double> values;
  for (const auto& metric : metrics.all) values.push_back(session.run(metric.value).scalar());
  return values;
}

}  // namespace

TEST_CASE("a step merges metrics that three tasks of a cluster have counted") {
  MemoryCluster cluster({{"worker", 3}});
  df::Graph graph;
  std::vector<ScoreMetrics> tasks;
  for (int task = 0; task < 3; ++task) {
    const auto on = graph.device("/job:worker/task:" + std::to_string(task));
    tasks.emplace_back(graph);
  }
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_local_variables(graph));
  const auto batches = scored_batches();
  for (std::size_t i = 0; i < batches.size(); ++i) tasks[i % 3].add(session, batches[i]);
  const std::vector<double> expected = values_alone();
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const auto merged = df::metrics::merged({tasks[0].all[k], tasks[1].all[k], tasks[2].all[k]});
    CHECK(session.run(merged).scalar() == Approx(expected[k]).epsilon(1e-12));
    CHECK(session.run(tasks[0].all[k].value).scalar() != Approx(expected[k]).epsilon(1e-6));
  }
}

TEST_CASE("replicas keep their metrics apart, and their totals add up in the caller's program") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 3}});
  const auto batches = scored_batches();
  const std::vector<double> expected = values_alone();
  std::vector<std::vector<df::Tensor<double>>> sums(3);
  for (int worker = 0; worker < 3; ++worker) {
    df::Graph graph;
    const auto on = graph.device(df::train::replica_device(cluster.spec_of("worker", worker)));
    const ScoreMetrics metrics(graph);
    df::Session session(graph, {.target = cluster.server("worker", worker).target()});
    session.run(df::initialize_local_variables(graph));
    for (std::size_t i = static_cast<std::size_t>(worker); i < batches.size(); i += 3) metrics.add(session, batches[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < metrics.all[k].totals.size(); ++i) {
        const auto total = df::Tensor<double>::of(session.run(metrics.all[k].totals[i].read_edge()));
        if (worker == 0) sums[k].push_back(total.copy());
        for (std::size_t j = 0; worker != 0 && j < total.span().size(); ++j) sums[k][i].span()[j] += total.span()[j];
      }
    }
  }
  df::Graph graph;
  const ScoreMetrics metrics(graph);
  df::Session session(graph);
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<df::AnyOutput> totals;
    for (const auto& sum : sums[k]) totals.push_back(df::constant(graph, sum));
    CHECK(session.run(metrics.all[k].value_of(totals)).scalar() == Approx(expected[k]).epsilon(1e-12));
  }
}
