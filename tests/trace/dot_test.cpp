#include <dflow/trace/dot.hpp>

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/str_cat.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

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
                   {0, 1, Drawing::Edge::Kind::control, 0, "", 1},
                   {1, 0, Drawing::Edge::Kind::transfer, 2, "int32 []", 1}};
  const std::string dot = dflow::to_dot(drawing);
  CHECK(dot.starts_with("digraph dflow {\n"));
  CHECK(dot_has(dot, "  label=\"a step\";\n"));
  CHECK(dot_has(dot, "  n0 [label=\"x\\nPlaceholder\", tooltip=\"all of x\", shape=ellipse, style=filled];\n"));
  CHECK(dot_has(dot, "  subgraph cluster_0 {\n"));
  CHECK(dot_has(dot, "    subgraph cluster_1 {\n"));
  CHECK(dot_has(dot, "      n1 [label=\"y\\nAdd\", fillcolor=\"#"));
  CHECK(dot_has(dot, "  n0 -> n1 [label=\"float [2] x2\", tooltip=\"x to y\"];\n"));
  CHECK(dot_has(dot, "  n0 -> n1 [tooltip=\"x to y\", style=dashed];\n"));
  CHECK(dot_has(dot, "  n1 -> n0 [label=\"int32 []\", tooltip=\"y:2 to x\", color=\"#c03030\""));
  CHECK(dot_has(dot, "d0 [label=\"/cpu:0\""));
}

TEST_CASE("colours of devices in DOT are those of their hues, and darker in each round") {
  Drawing drawing;
  for (int i = 0; i < 48; ++i) drawing.devices.push_back(dflow::str_cat("/cpu:", i));
  const std::string dot = dflow::to_dot(drawing);
  // HLS to RGB by Python's colorsys
  const std::pair<int, const char*> expected[] = {
      {0, "#b9d7f4"}, {1, "#e9f4b9"}, {2, "#edb9f4"}, {12, "#ef9fa0"}, {47, "#6a87e7"}};
  for (const auto& [i, color] : expected) {
    CHECK(dot_has(dot, dflow::str_cat("label=\"/cpu:", i, "\", shape=box, style=filled, fillcolor=\"", color, "\"];")));
  }
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
  CHECK(dot_has(dot, "n0 -> n0 [label=\"\\\"\", tooltip=\"a\\\"b\\\\ to a\\\"b\\\\\"]"));
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

// Run by a test of its own, which says that it is not run where Graphviz is not installed.
TEST_CASE("Graphviz lays a drawing out, whatever its names are", "[.graphviz]") {
  if (std::system("command -v dot > /dev/null") != 0) {
    std::cout << "skipped: Graphviz is not installed\n";
    return;
  }
  Drawing drawing;
  drawing.title = "</svg>\"];} digraph evil {\n&lt;\\";
  drawing.note = "3 more nodes are not drawn";
  drawing.devices = {"\\N\xff"};
  drawing.boxes = {{"outer<&>", Drawing::Box::Kind::part, -1},
                   {"inner", Drawing::Box::Kind::function, 0},
                   {"]]>", Drawing::Box::Kind::scope, 1}};
  drawing.nodes = {{"a\"b\\", "\x01\n<b>", "", std::string("\0x", 2), Drawing::Node::Kind::state, 2, 0},
                   {"\xef\xbf\xbe", "Op", "calls f", "in\nlines", Drawing::Node::Kind::source, 1, -1},
                   {"closed", "3 nodes", "", "", Drawing::Node::Kind::scope, -1, -1}};
  drawing.edges = {{0, 0, Drawing::Edge::Kind::data, 0, "\"", 1},
                   {0, 1, Drawing::Edge::Kind::control, 0, "", 1},
                   {1, 2, Drawing::Edge::Kind::transfer, 1, "float [2]", 1}};
  const dflow::testing::TemporaryFolder folder;
  const std::string dot = folder.file("drawing.dot"), svg = folder.file("drawing.svg");
  dflow::PosixFileSystem files;
  files.write_file_atomically(dot, dflow::to_dot(drawing));
  const int status = std::system(dflow::str_cat("dot -Tsvg '", dot, "' -o '", svg, "' 2>&1").c_str());
  const std::string drawn = status == 0 ? files.read_file(svg) : std::string();
  REQUIRE(status == 0);
  for (const char* part : {"</svg>", ">closed<", ">]]&gt;<", "3 more nodes are not drawn", "calls f"}) {
    CHECK(dot_has(drawn, part));
  }
}
