// Partial runs with parts in several tasks.
#include <dflow/net/server.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "net/cluster_harness.hpp"
#include "support/errors.hpp"

#include <string>

namespace df = dflow;
using dflow::testing::MemoryCluster;

namespace {

/// Feeds and fetches of all sizes, here, on parameter servers and across them: x there, y = f(x) on one server, z =
/// g(y, late) on the other.
struct SplitModel {
  df::Graph graph;
  df::Output<float> x, late, y, z;
  df::Variable<float> w;
  df::Operation add;

  SplitModel() {
    x = df::placeholder<float>(graph, {df::dynamic});
    late = df::placeholder<float>(graph, {});
    {
      const auto on = graph.device("/job:ps/task:0");
      w = df::Variable<float>(graph, 0, {.name = "w"});
      y = x * 2.0f;
    }
    {
      const auto on = graph.device("/job:ps/task:1");
      z = df::reduce_sum(y) * late;
    }
    add = w.assign_add(z);
  }
};

}  // namespace

TEST_CASE("a partial run spans tasks: each computes what it can from what has been fed") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  SplitModel model;
  df::Session session(model.graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  float expected = 0;
  for (const int size : {3, 100'000, 3}) {
    auto run = session.partial_run(df::feeds(model.x, model.late), df::fetches(model.y, model.z, model.add));
    const df::Tensor<float> y = run.feed(model.x, df::Tensor<float>::full({size}, 1.0f)).fetch(model.y);
    CHECK(y(size - 1) == 2);
    CHECK(code_of([&] { run.fetch(model.z); }) == df::Code::invalid_argument);
    CHECK(session.run(model.w).scalar() == expected);
    CHECK(run.feed(model.late, 3.0f).fetch(model.z).scalar() == 6.0f * static_cast<float>(size));
    expected += 6.0f * static_cast<float>(size);
    CHECK(session.run(model.w).scalar() == expected);
  }
  for (const auto& [job, task] : {std::pair("ps", 0), std::pair("ps", 1)}) {
    CHECK(cluster.server(job, task).devices().size() == 1);
  }
}

TEST_CASE("a partial run that is let go of ends in all tasks, and one whose task is lost names it") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  SplitModel model;
  df::Session session(model.graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  for (int round = 0; round < 3; ++round) {
    auto run = session.partial_run(df::feeds(model.x, model.late), df::fetches(model.y, model.add));
    run.feed(model.x, df::Tensor<float>({1}, {1.0f})).fetch(model.y);
  }
  CHECK(session.run(model.w).scalar() == 0);
  auto run = session.partial_run(df::feeds(model.x, model.late), df::fetches(model.y, model.z));
  run.feed(model.x, df::Tensor<float>({1}, {1.0f})).fetch(model.y);
  cluster.stop("ps", 1);
  const df::Status status = status_of([&] { run.feed(model.late, 1.0f).fetch(model.z); });
  CHECK(status.code() == df::Code::unavailable);
  CHECK(status.to_string().find("/job:ps/replica:0/task:1") != std::string::npos);
}
