#include <dflow/train/replicas/replica_device.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>

#include <limits>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

struct TwoServers {
  int num_tasks(std::string_view job) const { return job == "ps" ? 2 : 3; }
  std::string task_name() const { return "/job:worker/replica:0/task:1"; }
};

std::vector<std::string> devices_of(const std::vector<df::Variable<float>>& variables) {
  std::vector<std::string> devices;
  for (const auto& variable : variables) devices.push_back(variable.handle().node().device);
  return devices;
}

df::Variable<float> make_variable_of(df::Graph& graph, std::int64_t elements) {
  return df::Variable<float>(graph, df::Tensor<float>::full({elements}, 0.0f));
}

}  // namespace

TEST_CASE("variables go to the parameter servers, the least loaded first, and all else stays with the replica") {
  df::Graph graph;
  std::vector<df::Variable<float>> variables;
  {
    const auto on = graph.device(df::train::replica_device(TwoServers()));
    for (const std::int64_t elements : {10, 4, 5, 8}) variables.push_back(make_variable_of(graph, elements));
    const auto sum = variables[0] + 1.0f;
    CHECK(sum.node().device == "/job:worker/replica:0/task:1");
  }
  CHECK(devices_of(variables) ==
        std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1"});
  CHECK(df::constant(graph, 1.0f).node().device.empty());
}

TEST_CASE("variables may go to the parameter servers in turn") {
  df::Graph graph;
  const auto on =
      graph.device(df::train::replica_device(TwoServers(), {.placement = df::train::VariablePlacement::round_robin}));
  std::vector<df::Variable<float>> variables;
  for (int i = 0; i < 3; ++i) variables.push_back(make_variable_of(graph, 4));
  CHECK(devices_of(variables) == std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"});
}

TEST_CASE("what is built on a variable is placed with it, slots of optimizers too, and they are not counted") {
  df::Graph graph;
  const auto on = graph.device(df::train::replica_device(TwoServers()));
  auto w = make_variable_of(graph, 8);
  auto loss = df::reduce_sum(df::square(w - 3.0f));
  [[maybe_unused]] const auto train = df::train::Adam(0.1f).minimize(loss);
  CHECK(make_variable_of(graph, 4).handle().node().device == "/job:ps/task:1");
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(df::NodeId(static_cast<std::int32_t>(i)));
    INFO(node.name);
    if (node.colocated_with.is_valid()) CHECK(node.device.empty());
  }
}

TEST_CASE("a device inside the scope of a function wins over it, one outside fills what it leaves open") {
  df::Graph graph;
  const auto outer = graph.device("/job:worker/device:CPU:1");
  const auto rule = graph.device([](const df::Node&) { return std::string("/task:2"); });
  CHECK(df::constant(graph, 1.0f).node().device == "/job:worker/task:2/device:CPU:1");
  const auto inner = graph.device("/task:5");
  CHECK(df::constant(graph, 1.0f).node().device == "/job:worker/task:5/device:CPU:1");
  const auto second = graph.device([](const df::Node& node) { return node.op->name == "Const" ? "/cpu:7" : ""; });
  CHECK(df::constant(graph, 1.0f).node().device == "/job:worker/task:5/device:CPU:7");
  CHECK(df::zeros<float>(graph, {}).node().device.starts_with("/job:worker/task:5"));
}

TEST_CASE("a function that gives no device's name is an error of the builder, and the graph is unchanged") {
  df::Graph graph;
  const auto rule = graph.device([](const df::Node&) { return std::string("/nonsense:1"); });
  const std::size_t before = graph.num_nodes();
  CHECK_THROWS_WITH(df::constant(graph, 1.0f), Catch::Contains("nonsense"));
  CHECK(graph.num_nodes() == before);
  CHECK_THROWS_AS(graph.device(df::DeviceFunction()), df::Error);
}

TEST_CASE("a replica without parameter servers keeps its variables") {
  df::Graph graph;
  const auto on = graph.device(df::train::replica_device(0, "/job:worker/task:0"));
  CHECK(make_variable_of(graph, 4).handle().node().device == "/job:worker/task:0");
  CHECK_THROWS_AS(df::train::replica_device(-1, "/job:worker/task:0"), df::Error);
  CHECK_THROWS_AS(df::train::replica_device(1, ""), df::Error);
}

TEST_CASE("as many parameter servers as there are numbers take variables one after the other") {
  for (const auto placement : {df::train::VariablePlacement::by_size, df::train::VariablePlacement::round_robin}) {
    df::Graph graph;
    const auto on = graph.device(
        df::train::replica_device(std::numeric_limits<int>::max(), "/job:worker/task:0", {.placement = placement}));
    CHECK(devices_of({make_variable_of(graph, 4), make_variable_of(graph, 2)}) ==
          std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1"});
  }
}
