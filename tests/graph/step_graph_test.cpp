#include <dflow/graph/step_graph.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>

#include "catch.hpp"

#include <string>
#include <unordered_set>

using namespace dflow;

TEST_CASE("a node before what it depends on is named", "[graph]") {
  const auto refused = [](std::vector<Endpoint> inputs_of_b, std::vector<NodeId> controls_of_b) -> std::string {
    StepGraph graph;
    for (const char* name : {"a", "b", "c"}) {
      Node node;
      node.op = &op_def<Placeholder>;
      node.name = name;
      if (node.name == "b") node.inputs = inputs_of_b;
      if (node.name == "b") node.control_inputs = controls_of_b;
      if (node.name == "c") node.control_inputs = {0, 1};
      graph.append(std::move(node));
    }
    try {
      require_topological_order(graph);
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      return std::string(error.status().node());
    }
    return {};
  };
  CHECK(refused({{0, 0}}, {}).empty());
  for (const NodeId later : {1, 2, -1}) {
    CHECK(refused({{later, 0}}, {}) == "b");
    CHECK(refused({}, {later}) == "b");
  }
}

TEST_CASE("a step keeps the nodes of a graph that is gone, and what is made for a copy is the copy's", "[graph]") {
  StepGraph step;
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {}, {.name = "x"});
    step.graph = graph.store()->keep_nodes();
    StepNode node(x.node());
    node.placed_on = 3;
    CHECK(step.append(node, {}, {}) == 0);
  }
  Node made;
  made.op = &op_def<Identity>;
  made.name = "made";
  made.inputs = {{0, 0}};
  made.outputs.resize(1);
  CHECK(step.append(made, 1) == 1);
  StepGraph copy = step;
  made.name = "of the copy";
  copy.append(made, 2);
  made.name = "of the first";
  step.append(made, 2);
  CHECK(step.nodes[0]->name == "x");
  CHECK(step.nodes[0].placed_on == 3);
  CHECK(step.nodes[1]->name == "made");
  CHECK(step.nodes[1].num_outputs == 1);
  CHECK(step.nodes[2]->name == "of the first");
  CHECK(copy.nodes[2]->name == "of the copy");
  CHECK(copy.nodes[1].node == step.nodes[1].node);
  REQUIRE(copy.inputs_of(copy.nodes[2]).size() == 1);
  CHECK(copy.inputs_of(copy.nodes[2])[0] == Endpoint{0, 0});
  CHECK(copy.controls_of(copy.nodes[2]).empty());
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
  const EdgePositions positions(edges, 60);
  for (std::size_t i = 0; i < edges.size(); ++i) CHECK(positions.find(edges[i]) == static_cast<std::int32_t>(i));
  for (const Endpoint other : {Endpoint{50, 0}, Endpoint{60, 0}, Endpoint{-1, 0}, Endpoint{7, 1}, Endpoint{7, 8}})
    CHECK(!positions.contains(other));
  CHECK(positions.twice() == -1);
  edges.push_back(edges[20]);
  CHECK(edges[static_cast<std::size_t>(EdgePositions(edges, 50).twice())] == edges[20]);
}

TEST_CASE("the value of a constant is read from its node", "[graph]") {
  Graph graph;
  CHECK(constant_value(constant(graph, 3.0f).node()).span<float>()[0] == 3);
}
