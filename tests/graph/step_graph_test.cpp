#include <dflow/graph/step_graph.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>

#include "catch.hpp"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

using namespace dflow;

static_assert(sizeof(Endpoint) == 8 && sizeof(StepNode) == 48);

namespace {
constexpr StepNodeId a(0), b(1);
}

TEST_CASE("a node before what it depends on is named", "[graph]") {
  const auto refused = [](std::vector<StepEndpoint> inputs_of_b, std::vector<StepNodeId> controls_of_b) -> std::string {
    StepGraph graph;
    for (const char* name : {"a", "b", "c"}) {
      Node node;
      node.op = &op_def<Placeholder>;
      node.name = name;
      const StepNodeId id = graph.nodes.end_index();
      if (id == b) graph.append(std::move(node), 0, inputs_of_b, controls_of_b);
      if (id < b) graph.append(std::move(node), 0);
      if (id > b) graph.append(std::move(node), 0, {}, std::vector{a, b});
    }
    try {
      require_topological_order(graph);
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      return std::string(error.status().node());
    }
    return {};
  };
  CHECK(refused({{a, 0}}, {}).empty());
  for (const StepNodeId later : {b, StepNodeId(2), StepNodeId()}) {
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
    CHECK(step.append(node, {}, {}) == StepNodeId(0));
  }
  Node made;
  made.op = &op_def<Identity>;
  made.name = "made";
  made.inputs = {{NodeId(7), 0}};  // of some graph
  made.control_inputs = {NodeId(7)};
  made.outputs.resize(1);
  const std::vector<StepEndpoint> inputs{{StepNodeId(0), 0}};
  CHECK(step.append(made, 1, inputs) == StepNodeId(1));
  StepGraph copy = step;
  made.name = "of the copy";
  copy.append(made, 2, inputs);
  made.name = "of the first";
  step.append(made, 2, inputs);
  const StepNodeId second(1), third(2);
  CHECK(step.nodes.front()->name == "x");
  CHECK(step.nodes.front().placed_on == 3);
  CHECK(step.node(second)->name == "made");
  CHECK(step.node(second).num_outputs == 1);
  CHECK(step.node(third)->name == "of the first");
  CHECK(copy.node(third)->name == "of the copy");
  CHECK(copy.node(second).node == step.node(second).node);
  REQUIRE(copy.inputs_of(copy.node(third)).size() == 1);
  CHECK(copy.inputs_of(copy.node(third))[0] == StepEndpoint{StepNodeId(0), 0});
  CHECK(copy.controls_of(copy.node(third)).empty());
  CHECK(copy.node(third)->inputs == std::vector<Endpoint>(1));
  CHECK(copy.node(third)->control_inputs.empty());
}

TEST_CASE("a table of edges tells the outputs of a node apart", "[graph]") {
  std::unordered_set<Endpoint, EndpointHash> edges;
  for (const NodeId node : IndexRange<NodeId>(100)) {
    for (std::int32_t index = 0; index < 20; ++index) CHECK(edges.insert({node, index}).second);
  }
  CHECK(edges.contains({NodeId(99), 19}));
  CHECK_FALSE(edges.contains({NodeId(100), 0}));
}

TEST_CASE("the position of an edge is found whatever the order, and one that is there twice is named", "[graph]") {
  using Positions = EdgePositions<StepNodeId>;
  CHECK(Positions().find({StepNodeId(0), 0}) == -1);
  CHECK(Positions().twice() == -1);
  std::vector<StepEndpoint> edges;
  for (int node = 50; node-- > 0;) {
    for (const std::int32_t index : {3, 0, 7}) edges.push_back({StepNodeId(node), index});
  }
  const Positions positions(edges, 60);
  for (std::size_t i = 0; i < edges.size(); ++i) CHECK(positions.find(edges[i]) == static_cast<std::int32_t>(i));
  for (const auto& [node, index] : {std::pair(50, 0), {60, 0}, {-1, 0}, {7, 1}, {7, 8}})
    CHECK(!positions.contains({StepNodeId(node), index}));
  CHECK(positions.twice() == -1);
  edges.push_back(edges[20]);
  CHECK(edges[static_cast<std::size_t>(Positions(edges, 50).twice())] == edges[20]);
}

TEST_CASE("the value of a constant is read from its node", "[graph]") {
  Graph graph;
  CHECK(constant_value(constant(graph, 3.0f).node()).span<float>()[0] == 3);
}
