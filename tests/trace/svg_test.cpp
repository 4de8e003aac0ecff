#include <dflow/trace/svg.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <algorithm>
#include <string>

using dflow::Drawing;

namespace {

bool svg_has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

/// As many elements are closed as are opened, and there is no character that XML 1.0 (section 2.2) has not.
bool is_well_formed(const std::string& text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 && c != '\n') return false;
    if (c != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return false;
    if (text[at + 1] == '/') {
      if (depth-- == 0) return false;
    } else if (text[end - 1] != '/') {
      ++depth;
    }
    at = end;
  }
  return depth == 0;
}

}  // namespace

TEST_CASE("an SVG file has a rectangle for each node and box, and a path for each edge") {
  Drawing drawing;
  drawing.title = "a step";
  drawing.note = "3 more nodes are not drawn";
  drawing.devices = {"/cpu:0"};
  drawing.boxes = {{"outer", Drawing::Box::Kind::scope, -1}, {"body", Drawing::Box::Kind::function, 0}};
  drawing.nodes = {{"x", "Placeholder", "", "all of x", Drawing::Node::Kind::source, -1, -1},
                   {"y", "Add", "calls f", "", Drawing::Node::Kind::operation, 1, 0},
                   {"s", "3 nodes", "", "", Drawing::Node::Kind::scope, 0, -1}};
  drawing.edges = {{0, 1, Drawing::Edge::Kind::data, 0, "float [2]", 1},
                   {0, 2, Drawing::Edge::Kind::control, 0, "", 1},
                   {1, 2, Drawing::Edge::Kind::transfer, 0, "int32 []", 1}};
  const std::string svg = dflow::to_svg(drawing);
  CHECK(is_well_formed(svg));
  for (const char* text :
       {">a step<", ">3 more nodes are not drawn<", ">/cpu:0<", ">outer<", ">body<", ">x<", ">calls f<", ">float [2]<",
        ">control<", ">sent<", "<title>all of x\n</title>", "x to y, float [2]"}) {
    CHECK(svg_has(svg, text));
  }
  CHECK(svg_has(svg, "stroke-dasharray=\"4 3\""));
  CHECK(svg == dflow::to_svg(drawing));
}

TEST_CASE("names of any bytes are text in SVG") {
  Drawing drawing;
  drawing.title = "<script>alert('x')</script>&\x02";
  drawing.devices = {"\xff\"'"};
  drawing.boxes = {{"]]>", Drawing::Box::Kind::scope, -1}};
  drawing.nodes = {
      {"</svg>", "\xef\xbf\xbe", "\xed\xa0\x80", std::string("\0\x1b[31m", 6), Drawing::Node::Kind::state, 0, 0}};
  drawing.edges = {{0, 0, Drawing::Edge::Kind::data, 0, "<&>", 1}};
  const std::string svg = dflow::to_svg(drawing);
  CHECK(is_well_formed(svg));
  CHECK(svg_has(svg, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\\x02"));
  CHECK(svg_has(svg, ">&lt;/svg&gt;<"));
  CHECK(svg_has(svg, ">\xef\xbf\xbd<"));
  CHECK_FALSE(svg_has(svg, "\xef\xbf\xbe"));
}

TEST_CASE("drawings with cycles, lonely nodes and many outputs are laid out") {
  Drawing drawing;
  for (int i = 0; i < 300; ++i) drawing.nodes.push_back({"n", "Op", "", "", Drawing::Node::Kind::operation, -1, -1});
  drawing.edges = {{0, 1}, {1, 2}, {2, 0}, {2, 2}, {3, 4}};
  for (int i = 0; i < 9; ++i) {
    drawing.edges.push_back({5, 6, Drawing::Edge::Kind::data, i, "float [" + std::to_string(i) + "]", 1});
  }
  const std::string svg = dflow::to_svg(drawing);
  CHECK(is_well_formed(svg));
  CHECK(svg_has(svg, ">6 more<"));
  CHECK(code_of([] {
          Drawing wrong;
          wrong.edges = {{0, 0}};
          return dflow::to_svg(wrong);
        }) == dflow::Code::invalid_argument);
}
