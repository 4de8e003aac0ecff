#include <dflow/train/partitioned_variable.hpp>

#include "catch.hpp"

#include <dflow/session/session.hpp>
#include <dflow/train/replicas/replica_device.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace df = dflow;

TEST_CASE("A partitioned variable is shards of nearly equal size with names of their own") {
  df::Graph graph({.seed = 3});
  const auto table = df::partitioned_variable<float>(graph, {11, 2, 3}, 3, {.name = "words"});
  REQUIRE(table.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(table[i].name() == "words/part_" + std::to_string(i));
    CHECK(table[i].shape() == df::PartialShape{i < 2 ? 4 : 3, 2, 3});
  }
  const auto again = df::partitioned_variable<double>(graph, {4}, 4, {.name = "words", .trainable = false});
  CHECK(again[3].name() == "words_1/part_3");
  CHECK(df::global_variables(graph).size() == 7);
  CHECK(df::trainable_variables(graph).size() == 3);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  std::set<float> values;
  for (const auto& shard : table) {
    for (const float value : session.run(shard)) values.insert(value);
  }
  CHECK(values.size() > 60);  // no two shards begin alike
}

TEST_CASE("Shards of a partitioned variable lie on different parameter servers") {
  df::Graph graph;
  const auto on = graph.device(df::train::replica_device(3, "/job:worker/task:0"));
  std::set<std::string> devices;
  for (const auto& shard : df::partitioned_variable<float>(graph, {12, 8}, 3)) {
    devices.insert(shard.handle().operation().node().device);
  }
  CHECK(devices.size() == 3);
}

TEST_CASE("Whatever a partitioned table and its lookup build has a line of the program") {
  df::Graph graph({.seed = 1});
  const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic, df::dynamic});
  const auto table = df::partitioned_variable<float>(graph, {12, 8}, 3);
  static_cast<void>(df::embedding_lookup(table, ids, df::PartitionStrategy::div));
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(static_cast<df::NodeId>(i));
    INFO(node.op->name << " '" << node.name << "' at " << node.where.file_name());
    CHECK(std::string(node.where.file_name()) == __FILE__);
  }
}

TEST_CASE("A partitioned variable of no shards, or of more than it has rows, is refused") {
  df::Graph graph;
  const auto refused = [&](const df::Shape& shape, std::int64_t shards, df::PartitionedVariableOptions options = {}) {
    try {
      static_cast<void>(df::partitioned_variable<float>(graph, shape, shards, options));
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::invalid_argument);
      CHECK(std::string(error.what()).find(__FILE__) != std::string::npos);
      return std::string(error.what()).find("partitioned_variable 'table'") != std::string::npos;
    }
    return false;
  };
  CHECK(refused({4, 2}, 0));
  CHECK(refused({4, 2}, -1));
  CHECK(refused({4, 2}, 5));
  CHECK(refused({4, 2}, std::int64_t{1} << 62));
  CHECK(refused({}, 1));
  CHECK(refused({4, 2}, 2, {.initializer = {}}));
  CHECK(graph.num_nodes() == 0);
}
