#include <dflow/trace/drawing.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/ops.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/trace/dot.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace df = dflow;
using df::Drawing;

namespace {

const Drawing::Node& drawn_node(const Drawing& drawing, std::string_view label) {
  const auto at = std::find_if(drawing.nodes.begin(), drawing.nodes.end(),
                               [&](const Drawing::Node& node) { return node.label == label; });
  INFO(label);
  REQUIRE(at != drawing.nodes.end());
  return *at;
}

std::vector<std::string> boxes_around(const Drawing& drawing, const Drawing::Node& node) {
  std::vector<std::string> labels;
  for (std::int32_t box = node.box; box >= 0; box = drawing.boxes[static_cast<std::size_t>(box)].parent) {
    labels.push_back(drawing.boxes[static_cast<std::size_t>(box)].label);
  }
  return labels;
}

}  // namespace

TEST_CASE("a drawing has a graph's nodes in the boxes of their scopes, and its edges with type and shape") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3}, {.name = "x"});
  df::Output<float> y;
  {
    const auto outer = graph.name_scope("outer");
    const auto inner = graph.name_scope("inner");
    const auto on = graph.device("/cpu:1");
    const auto after = graph.control_dependencies({x.operation()});
    y = df::add(x, x, {.name = "y"});
  }
  const Drawing drawing = df::drawing_of(graph);
  REQUIRE(drawing.nodes.size() == 2);
  CHECK(drawing.nodes[0].label == "x");
  CHECK(drawing.nodes[0].op == "Placeholder");
  CHECK(drawing.nodes[0].kind == Drawing::Node::Kind::source);
  CHECK(drawing.nodes[0].box == -1);
  CHECK(drawing.nodes[0].device == -1);
  CHECK(drawing.nodes[1].label == "y");
  CHECK(boxes_around(drawing, drawing.nodes[1]) == std::vector<std::string>{"inner", "outer"});
  CHECK(drawing.devices == std::vector<std::string>{y.node().device});
  CHECK(drawing.nodes[1].device == 0);
  CHECK(drawing.nodes[1].tooltip.find("outer/inner/y\nAdd of float") == 0);
  CHECK(drawing.nodes[1].tooltip.find("drawing_test.cpp:") != std::string::npos);
  REQUIRE(drawing.edges.size() == 2);
  CHECK(drawing.edges[0].kind == Drawing::Edge::Kind::data);
  CHECK(drawing.edges[0].label == "float [?,3]");
  CHECK(drawing.edges[0].count == 2);
  CHECK(drawing.edges[1].kind == Drawing::Edge::Kind::control);
  CHECK(drawing.edges[1].label.empty());
  CHECK(drawing.note.empty());
}

TEST_CASE("bodies of functions are drawn as boxes of their own, and calls name them") {
  df::Graph graph;
  const auto twice = df::function(graph, "twice", [](df::Output<float> x) { return x + x; });
  const auto a = df::placeholder<float>(graph, {2}, {.name = "a"});
  const auto y = twice(a, {.name = "y"});
  const Drawing drawing = df::drawing_of(graph);
  CHECK(drawn_node(drawing, "y").calls == "calls twice");
  CHECK(drawn_node(drawing, "y").box == -1);
  CHECK(boxes_around(drawing, drawn_node(drawing, "Add")) == std::vector<std::string>{"function twice"});
  REQUIRE(drawing.boxes.size() == 1);
  CHECK(drawing.boxes[0].kind == Drawing::Box::Kind::function);

  df::Session session(graph, {.num_threads = 1});
  const Drawing step = df::drawing_of(session.prepare(df::feeds(a), df::fetches(y)).device_graphs());
  CHECK(boxes_around(step, drawn_node(step, "Add")).front() == "function twice");
  CHECK(step.boxes.front().kind == Drawing::Box::Kind::part);
}

TEST_CASE("the back edges of raw loops are drawn, and so is the frame that a step makes of them") {
  df::Graph graph;
  const auto merged = df::frames::merge({df::frames::enter(df::constant(graph, 0), "count")});
  const auto goes_on = df::frames::loop_cond(merged.value < df::frames::enter(df::constant(graph, 3), "count"));
  const auto [last, now] = df::frames::switch_on(merged.value, goes_on);
  df::frames::next_iteration(now + 1, merged);
  const auto count = df::frames::exit(last);
  const Drawing drawing = df::drawing_of(graph);
  CHECK(std::count_if(drawing.edges.begin(), drawing.edges.end(),
                      [](const Drawing::Edge& edge) { return edge.from > edge.to; }) == 1);

  df::Session session(graph, {.num_threads = 1});
  const Drawing step = df::drawing_of(session.prepare(df::feeds(), df::fetches(count)).device_graphs());
  CHECK(drawn_node(step, "LoopCond").box >= 0);
}

TEST_CASE("what a session decides is drawn: devices of nodes, and what they send each other") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2}, {.name = "x"});
  df::Output<float> y, z;
  {
    const auto on = graph.device("/cpu:0");
    y = df::exp(x, {.name = "y"});
  }
  {
    const auto on = graph.device("/cpu:1");
    z = df::exp(y, {.name = "z"});
  }
  df::Session session(graph, {.num_threads = 1, .num_cpu_devices = 2});
  const std::string first = session.device_of(y.operation()), second = session.device_of(z.operation());
  CHECK(first != second);
  CHECK(session.devices()[1]->name() == second);

  const Drawing placed = df::drawing_of(graph, session, {.title = "placed"});
  CHECK(placed.title == "placed");
  const Drawing::Node& drawn_z = drawn_node(placed, "z");
  REQUIRE(drawn_z.device >= 0);
  CHECK(placed.devices[static_cast<std::size_t>(drawn_z.device)] == second);

  const auto step = session.prepare(df::feeds(x), df::fetches(z));
  const std::vector<df::DeviceGraph> parts = step.device_graphs();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].device == first);
  const Drawing drawing = df::drawing_of(parts);
  CHECK(std::count_if(drawing.edges.begin(), drawing.edges.end(),
                      [](const Drawing::Edge& edge) { return edge.kind == Drawing::Edge::Kind::transfer; }) == 1);
  CHECK(boxes_around(drawing, drawn_node(drawing, "z")) == std::vector<std::string>{second});
  CHECK(drawn_node(drawing, "z").tooltip.find("\nfetched\n") != std::string::npos);
  CHECK(step(df::Tensor<float>({2}, {0, 0}))(0) == Approx(2.718281828f));
}

TEST_CASE("a node without a place is drawn as that") {
  df::Graph graph, other;
  const auto on = graph.device("/job:nowhere/task:7");
  const auto x = df::exp(df::constant(graph, 1.0f), {.name = "x"});
  df::Session session(graph, {.num_threads = 1});
  CHECK(code_of([&] { return session.device_of(x.operation()); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return session.device_of(df::constant(other, 1).operation()); }) == df::Code::invalid_argument);
  const Drawing drawing = df::drawing_of(graph, session);
  CHECK(drawing.devices[static_cast<std::size_t>(drawn_node(drawing, "x").device)] == "no device");
}

TEST_CASE("a large graph is drawn with its scopes closed, and what is still too much left out") {
  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {}, {.name = "x"});
  for (int layer = 0; layer < 20; ++layer) {
    const auto in = graph.name_scope("layer");
    for (int i = 0; i < 10; ++i) {
      const auto inner = graph.name_scope("block");
      x = df::exp(x);
      x = df::neg(x);
    }
  }
  CHECK(df::drawing_of(graph, {.max_nodes = 401}).nodes.size() == 401);
  const Drawing blocks = df::drawing_of(graph, {.max_nodes = 400});
  CHECK(blocks.nodes.size() == 201);
  CHECK(blocks.nodes[1].kind == Drawing::Node::Kind::scope);
  CHECK(blocks.nodes[1].label == "block");
  CHECK(blocks.nodes[1].op == "2 nodes");
  CHECK(boxes_around(blocks, blocks.nodes[1]) == std::vector<std::string>{"layer"});
  CHECK(blocks.edges.size() == 200);
  CHECK(df::drawing_of(graph, {.max_nodes = 100}).nodes.size() == 21);
  CHECK(df::drawing_of(graph, {.max_depth = 0}).nodes.size() == 21);
  const Drawing cut = df::drawing_of(graph, {.max_nodes = 5, .max_edges = 2});
  CHECK(cut.nodes.size() == 5);
  CHECK(cut.edges.size() == 2);
  CHECK(cut.note == "320 more nodes, 322 more edges are not drawn");
  CHECK(code_of([&] { return df::drawing_of(graph, {.max_nodes = 0}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return df::drawing_of(graph, {.max_edges = 0}); }) == df::Code::invalid_argument);
}

TEST_CASE("an edge that leads back into the first closed scope is drawn") {
  df::Graph graph;
  df::Output<float> x, y;
  {
    const auto in = graph.name_scope("first");
    x = df::placeholder<float>(graph, {}, {.name = "x"});
  }
  y = df::exp(x, {.name = "y"});
  {
    const auto in = graph.name_scope("first/");
    x = df::neg(y);
  }
  const Drawing drawing = df::drawing_of(graph, {.max_depth = 0});
  REQUIRE(drawing.nodes.size() == 2);
  CHECK(drawing.nodes[0].kind == Drawing::Node::Kind::scope);
  REQUIRE(drawing.edges.size() == 2);
  CHECK(drawing.edges[1].from == 1);
  CHECK(drawing.edges[1].to == 0);
  CHECK(drawing.note.empty());
}

TEST_CASE("the same graph makes the same bytes, and long names are cut") {
  const auto draw = [] {
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {4, 4}, {.name = std::string(4000, 'x')});
    const auto y = df::reduce_sum(df::matmul(x, df::softmax(x)));
    df::gradients(y, x);
    return df::drawing_of(graph, {.max_nodes = 50});
  };
  const Drawing a = draw(), b = draw();
  CHECK(df::to_dot(a) == df::to_dot(b));
  CHECK(a.nodes[0].label == std::string(64, 'x') + "\xe2\x80\xa6");
  CHECK(df::to_dot(a).size() < 100'000);
}

TEST_CASE("a graph of no nodes is a drawing") {
  const Drawing drawing = df::drawing_of(df::Graph());
  CHECK(df::to_dot(drawing).find("}\n") != std::string::npos);
}
