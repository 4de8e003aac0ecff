#include <dflow/graph/step_graph.hpp>

#include <dflow/ops/array/constant.hpp>

#include "catch.hpp"

#include <string>
#include <unordered_set>

using namespace dflow;

TEST_CASE("a node before what it depends on is named", "[graph]") {
  StepGraph graph;
  for (const char* name : {"a", "b", "c"}) {
    Node& node = graph.nodes.emplace_back();
    node.op = &op_def<Placeholder>;
    node.name = name;
  }
  graph.nodes[1].inputs = {{0, 0}};
  graph.nodes[2].control_inputs = {0, 1};
  CHECK_NOTHROW(require_topological_order(graph));
  const auto refused = [&]() -> std::string {
    try {
      require_topological_order(graph);
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      return std::string(error.status().node());
    }
    return {};
  };
  for (const NodeId later : {1, 2, -1}) {
    graph.nodes[1].inputs = {{later, 0}};
    CHECK(refused() == "b");
    graph.nodes[1].inputs.clear();
    graph.nodes[1].control_inputs = {later};
    CHECK(refused() == "b");
    graph.nodes[1].control_inputs.clear();
  }
}

TEST_CASE("a table of edges tells the outputs of a node apart", "[graph]") {
  std::unordered_set<Endpoint, EndpointHash> edges;
  for (NodeId node = 0; node < 100; ++node) {
    for (std::int32_t index = 0; index < 20; ++index) CHECK(edges.insert({node, index}).second);
  }
  CHECK(edges.contains({99, 19}));
  CHECK_FALSE(edges.contains({100, 0}));
}

TEST_CASE("the position of an edge is found whatever the order, and one that is there twice is named", "[graph]") {
  CHECK(EdgePositions().find({0, 0}) == -1);
  CHECK(EdgePositions().twice() == -1);
  std::vector<Endpoint> edges;
  for (NodeId node = 50; node-- > 0;) {
    for (const std::int32_t index : {3, 0, 7}) edges.push_back({node, index});
  }
  const EdgePositions positions(edges);
  for (std::size_t i = 0; i < edges.size(); ++i) CHECK(positions.find(edges[i]) == static_cast<std::int32_t>(i));
  for (const Endpoint other : {Endpoint{50, 0}, Endpoint{-1, 0}, Endpoint{7, 1}, Endpoint{7, 8}})
    CHECK(!positions.contains(other));
  CHECK(positions.twice() == -1);
  edges.push_back(edges[20]);
  CHECK(edges[static_cast<std::size_t>(EdgePositions(edges).twice())] == edges[20]);
}

TEST_CASE("the value of a constant is read from its node", "[graph]") {
  Graph graph;
  CHECK(constant_value(constant(graph, 3.0f).node()).span<float>()[0] == 3);
}
