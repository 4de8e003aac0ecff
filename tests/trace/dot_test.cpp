#include <dflow/trace/dot.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <string>

using dflow::Drawing;

namespace {

bool dot_has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("DOT text has clusters for boxes, dashes for control edges and colours for devices") {
  Drawing drawing;
  drawing.title = "a step";
  drawing.devices = {"/cpu:0"};
  drawing.boxes = {{"outer", Drawing::Box::Kind::function, -1}, {"inner", Drawing::Box::Kind::scope, 0}};
  drawing.nodes = {{"x", "Placeholder", "", "all of x", Drawing::Node::Kind::source, -1, -1},
                   {"y", "Add", "", "", Drawing::Node::Kind::operation, 1, 0}};
  drawing.edges = {{0, 1, Drawing::Edge::Kind::data, 0, "float [2]", 2},
                   {0, 1, Drawing::Edge::Kind::control, 0, "", 1}};
  const std::string dot = dflow::to_dot(drawing);
  CHECK(dot.starts_with("digraph dflow {\n"));
  CHECK(dot_has(dot, "  label=\"a step\";\n"));
  CHECK(dot_has(dot, "  n0 [label=\"x\\nPlaceholder\", tooltip=\"all of x\", shape=ellipse, style=filled];\n"));
  CHECK(dot_has(dot, "  subgraph cluster_0 {\n"));
  CHECK(dot_has(dot, "    subgraph cluster_1 {\n"));
  CHECK(dot_has(dot, "      n1 [label=\"y\\nAdd\", fillcolor=\"#"));
  CHECK(dot_has(dot, "  n0 -> n1 [label=\"float [2] x2\"];\n"));
  CHECK(dot_has(dot, "  n0 -> n1 [style=dashed];\n"));
  CHECK(dot_has(dot, "d0 [label=\"/cpu:0\""));
}

TEST_CASE("names of any bytes stay inside of their quotes in DOT") {
  Drawing drawing;
  drawing.title = "\"];} digraph evil {\n&lt;\\";
  drawing.devices = {"\\N\xff"};
  drawing.nodes = {{"a\"b\\", "\x01\n<b>", "", std::string("\0x", 2), Drawing::Node::Kind::state, -1, 0}};
  drawing.edges = {{0, 0, Drawing::Edge::Kind::data, 0, "\"", 1}};
  const std::string dot = dflow::to_dot(drawing);
  CHECK(dot_has(dot, "label=\"\\\"];} digraph evil {\\n&amp;lt;\\\\\";\n"));
  CHECK(dot_has(dot, "n0 [label=\"a\\\"b\\\\\\n\\\\x01"));
  CHECK(dot_has(dot, "[label=\"\\\\N\xef\xbf\xbd\""));
  CHECK(dot_has(dot, "n0 -> n0 [label=\"\\\"\"]"));
}

TEST_CASE("a drawing that names what it does not have is an error") {
  const auto code = [](const Drawing& drawing) { return code_of([&] { return dflow::to_dot(drawing); }); };
  Drawing drawing;
  drawing.nodes.resize(1);
  CHECK(code(drawing) == dflow::Code::ok);
  drawing.edges = {{0, 1}};
  CHECK(code(drawing) == dflow::Code::invalid_argument);
  drawing.edges = {{-1, 0}};
  CHECK(code(drawing) == dflow::Code::invalid_argument);
  drawing.edges.clear();
  drawing.nodes[0].box = 0;
  CHECK(code(drawing) == dflow::Code::invalid_argument);
  drawing.boxes.resize(1);
  CHECK(code(drawing) == dflow::Code::ok);
  drawing.boxes[0].parent = 0;
  CHECK(code(drawing) == dflow::Code::invalid_argument);
  drawing.boxes[0].parent = -2;
  CHECK(code(drawing) == dflow::Code::invalid_argument);
  drawing.boxes[0].parent = -1;
  drawing.nodes[0].device = 0;
  CHECK(code(drawing) == dflow::Code::invalid_argument);
}

TEST_CASE("boxes may be nested as deeply as names are long") {
  Drawing drawing;
  for (int i = 0; i < 2000; ++i) drawing.boxes.push_back({"b", Drawing::Box::Kind::scope, i - 1});
  drawing.nodes.push_back({"x", "Op", "", "", Drawing::Node::Kind::operation, 1999, -1});
  CHECK(dflow::to_dot(drawing).size() > 2000 * 20);
}
