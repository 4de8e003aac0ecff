#include <dflow/ops/data_flow/embedding.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cluster_harness.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

constexpr std::int64_t sharded_rows = 1000, sharded_width = 64;

df::Tensor<std::int32_t> ids_of_step(std::int64_t step, std::int64_t worker = 0) {
  df::Tensor<std::int32_t> ids(df::Shape{6});
  for (std::int64_t i = 0; i < 6; ++i) {
    ids(i) = static_cast<std::int32_t>((step * 37 + i * 211 + worker * 101) % sharded_rows);
  }
  ids(5) = ids(0);
  return ids;
}

/// A table in three shards. Each step moves the rows that it looks up toward 1.
struct ShardedModel {
  explicit ShardedModel(const df::DeviceFunction& place, df::PartitionStrategy strategy) : graph({.seed = 5}) {
    const auto on = graph.device(place);
    ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
    table = df::partitioned_variable<float>(graph, {sharded_rows, sharded_width}, 3,
                                            {.initializer = df::init::constant(0.5)});
    loss = df::reduce_sum(df::square(df::embedding_lookup(table, ids, strategy) - 1.0f));
    train = df::train::GradientDescent(0.125f).minimize(loss);
  }

  df::Graph graph;
  df::Output<std::int32_t> ids;
  df::PartitionedVariable<float> table;
  df::Output<float> loss;
  df::Operation train;
};

df::DeviceFunction on_servers(const MemoryCluster& cluster, int worker) {
  return df::train::replica_device(cluster.spec_of("worker", worker));
}

}  // namespace

TEST_CASE("A table over three parameter servers is trained as in one process, bit for bit") {
  for (const auto strategy : {df::PartitionStrategy::mod, df::PartitionStrategy::div}) {
    MemoryCluster cluster({{"ps", 3}, {"worker", 1}});
    ShardedModel together(on_servers(cluster, 0), strategy);
    ShardedModel alone(df::train::replica_device(0, "/job:localhost/task:0"), strategy);
    std::set<std::string> tasks;
    for (const auto& shard : together.table) tasks.insert(shard.handle().operation().node().device);
    CHECK(tasks.size() == 3);
    df::Session session(together.graph, {.target = cluster.server("worker", 0).target()});
    df::Session local(alone.graph);
    session.run(df::initialize_variables(together.graph));
    local.run(df::initialize_variables(alone.graph));
    for (int step = 0; step < 5; ++step) {
      const float value = session.run({{together.ids, ids_of_step(step)}}, together.loss, together.train).scalar();
      CHECK(value == local.run({{alone.ids, ids_of_step(step)}}, alone.loss, alone.train).scalar());
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const df::Tensor<float> remote = session.run(together.table[i]), here = local.run(alone.table[i]);
      CHECK(std::equal(remote.begin(), remote.end(), here.begin(), here.end()));
    }
  }
}

TEST_CASE("Only the rows of a step go between a worker and the servers that have them") {
  MemoryCluster cluster({{"ps", 3}, {"worker", 1}});
  ShardedModel model(on_servers(cluster, 0), df::PartitionStrategy::mod);
  df::Session session(model.graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  df::RunMetadata metadata;
  session.run({.trace = true}, &metadata, {{model.ids, ids_of_step(0)}}, model.loss, model.train);
  std::int64_t received = 0;
  int gathers = 0, updates = 0;
  for (const df::NodeStats& node : metadata.stats.nodes) {
    CAPTURE(node.node, node.op, node.device, node.output_shapes);
    const bool on_server = node.device.find("/job:ps/") != std::string::npos;
    if (node.op == "_Recv") received += node.output_bytes;
    if (node.op == "DynamicPartition" || node.op == "DynamicStitch") CHECK_FALSE(on_server);
    if (node.op == "SparseApplyGradientDescent") {
      ++updates;
      CHECK(on_server);
    }
    if (node.op == "Gather" && node.node.find("gradients") == std::string::npos) {
      ++gathers;
      CHECK(on_server);
    }
  }
  CHECK(gathers == 3);
  CHECK(updates == 3);
  // Six rows there, six gradients back, and ids; a shard has 334 rows.
  const auto row_bytes = static_cast<std::int64_t>(sizeof(float)) * sharded_width;
  CHECK(received >= 12 * row_bytes);
  CHECK(received < 16 * row_bytes);
}

TEST_CASE("The rows of a table on a server are gathered there, by the layer and by the function") {
  for (const bool is_layer : {true, false}) {
    MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
    struct Model {
      Model(const df::DeviceFunction& place, bool is_layer) : graph({.seed = 5}) {
        const auto on = graph.device(place);
        ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
        const df::Variable<float> table(graph, df::Tensor<float>::full({sharded_rows, sharded_width}, 0.5f));
        const df::Output<float> rows =
            is_layer ? df::embedding<float>(ids, sharded_rows, sharded_width, {.initializer = df::init::constant(0.5)})
                     : df::embedding_lookup(table, ids);
        loss = df::reduce_sum(df::square(rows - 1.0f));
        train = df::train::GradientDescent(0.125f).minimize(loss);
      }
      df::Graph graph;
      df::Output<std::int32_t> ids;
      df::Output<float> loss;
      df::Operation train;
    };
    Model model(on_servers(cluster, 0), is_layer);
    Model alone(df::train::replica_device(0, "/job:localhost/task:0"), is_layer);
    df::Session session(model.graph, {.target = cluster.server("worker", 0).target()});
    df::Session local(alone.graph);
    session.run(df::initialize_variables(model.graph));
    local.run(df::initialize_variables(alone.graph));
    for (int step = 0; step < 3; ++step) {
      df::RunMetadata metadata;
      const float value =
          session.run({.trace = true}, &metadata, {{model.ids, ids_of_step(step)}}, model.loss, model.train).scalar();
      CHECK(value == local.run({{alone.ids, ids_of_step(step)}}, alone.loss, alone.train).scalar());
      std::int64_t received = 0;
      for (const df::NodeStats& node : metadata.stats.nodes) {
        if (node.op == "_Recv") received += node.output_bytes;
      }
      // Six rows there, six gradients back, and ids; the table has 1,000 rows.
      CHECK(received < 16 * static_cast<std::int64_t>(sizeof(float)) * sharded_width);
    }
  }
}

TEST_CASE("The first value of a table is made on the server that has it, with the same bits") {
  for (const bool is_whole : {true, false}) {
    INFO((is_whole ? "a layer" : "shards"));
    MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
    struct Model {
      Model(const df::DeviceFunction& place, bool is_whole) : graph({.seed = 5}) {
        const auto on = graph.device(place);
        const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
        if (is_whole) {
          const df::Embedding<float> layer(sharded_rows, sharded_width);
          static_cast<void>(layer(ids));
        } else {
          static_cast<void>(df::partitioned_variable<float>(graph, {sharded_rows, sharded_width}, 2));
        }
      }
      df::Graph graph;
    };
    Model together(on_servers(cluster, 0), is_whole);
    Model alone(df::train::replica_device(0, "/job:localhost/task:0"), is_whole);
    df::Session session(together.graph, {.target = cluster.server("worker", 0).target()});
    df::Session local(alone.graph);
    df::RunMetadata metadata;
    session.run({.trace = true}, &metadata, {}, df::initialize_variables(together.graph));
    local.run(df::initialize_variables(alone.graph));
    std::int64_t received = 0;
    for (const df::NodeStats& node : metadata.stats.nodes) {
      if (node.op == "_Recv") received += node.output_bytes;
    }
    CHECK(received < 100);  // the table has 256,000 bytes
    const auto variables = df::global_variables(together.graph), here = df::global_variables(alone.graph);
    REQUIRE(variables.size() == here.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const auto there = session.run(df::Output<float>(variables[i].read_edge())),
                 wanted = local.run(df::Output<float>(here[i].read_edge()));
      CHECK(std::equal(there.begin(), there.end(), wanted.begin(), wanted.end()));
    }
  }
}

TEST_CASE("Workers that train at their own pace share one table in shards") {
  MemoryCluster cluster({{"ps", 3}, {"worker", 2}});
  std::vector<float> last(2);
  ShardedModel first(on_servers(cluster, 0), df::PartitionStrategy::div);
  ShardedModel second(on_servers(cluster, 1), df::PartitionStrategy::div);
  df::Session session(first.graph, {.target = cluster.server("worker", 0).target({"/job:ps"})});
  session.run(df::initialize_variables(first.graph));
  {
    const std::jthread other([&] {
      df::Session own(second.graph, {.target = cluster.server("worker", 1).target({"/job:ps"})});
      for (int i = 0; i < 40; ++i)
        last[1] = own.run({{second.ids, ids_of_step(3, 1)}}, second.loss, second.train).scalar();
    });
    for (int i = 0; i < 40; ++i) last[0] = session.run({{first.ids, ids_of_step(3)}}, first.loss, first.train).scalar();
  }
  CHECK(last[0] < 1e-3f);
  CHECK(last[1] < 1e-3f);
  CHECK(session.run({{first.ids, ids_of_step(3, 1)}}, first.loss).scalar() < 1e-3f);
}

TEST_CASE("An id beyond a table in shards ends the step everywhere, and the next one runs") {
  MemoryCluster cluster({{"ps", 3}, {"worker", 1}});
  ShardedModel model(on_servers(cluster, 0), df::PartitionStrategy::mod);
  df::Session session(model.graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  for (int i = 0; i < 3; ++i) {
    try {
      session.run({{model.ids, df::Tensor<std::int32_t>({2}, {4, 1000 + i})}}, model.train);
      CHECK(false);
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::invalid_argument);
      const std::string bad = "ids[1] = " + std::to_string(1000 + i) + " is outside [0, 1000)";
      CHECK(std::string(error.what()).find(bad) != std::string::npos);
    }
    const auto empty = session.run({{model.ids, df::Tensor<std::int32_t>({0}, {})}}, model.loss, model.train);
    CHECK(empty.scalar() == 0.0f);
  }
  for (const auto& shard : model.table) {
    const df::Tensor<float> value = session.run(shard);
    CHECK(std::all_of(value.begin(), value.end(), [](float x) { return x == 0.5f; }));
  }
}
