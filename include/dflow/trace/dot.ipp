#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/trace/dot.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

/// Throws InvalidArgument unless the parts name only things that exist, and boxes stand behind their parents.
void check_drawing(const Drawing& drawing) {
  const auto check = [](std::int32_t number, std::int32_t least, std::size_t end, std::string_view what) {
    if (number >= least && (number < 0 || static_cast<std::size_t>(number) < end)) return;
    throw_error(Status::invalid_argument(str_cat("a drawing with ", end, ' ', what, " names number ", number)));
  };
  for (std::size_t i = 0; i < drawing.boxes.size(); ++i) check(drawing.boxes[i].parent, -1, i, "boxes before one");
  for (const Drawing::Node& node : drawing.nodes) {
    check(node.box, -1, drawing.boxes.size(), "boxes");
    check(node.device, -1, drawing.devices.size(), "devices");
  }
  for (const Drawing::Edge& edge : drawing.edges) {
    check(edge.from, 0, drawing.nodes.size(), "nodes");
    check(edge.to, 0, drawing.nodes.size(), "nodes");
  }
}

/// A light colour for device `i`, "#rrggbb". Hues are a golden angle apart, so that colours of the first devices are
/// far from each other.
std::string device_color(std::size_t i) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr double golden_share = 0.6180339887498949, saturation = 0.72, first_hue = 0.58;
  // Later rounds of hues are darker.
  const double lightness = 0.84 - 0.06 * static_cast<double>(i / 12 % 4);
  const double hue = std::fmod(first_hue + golden_share * static_cast<double>(i % 100'000), 1.0);
  const double chroma = saturation * std::min(lightness, 1 - lightness);
  std::string color = "#";
  for (const double offset : {0.0, 8.0, 4.0}) {  // HSL to RGB as in CSS Color Module Level 3, section 4.2.4
    const double k = std::fmod(offset + hue * 12, 12);
    const double share = lightness - chroma * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    const auto byte = static_cast<unsigned>(std::lround(share * 255));
    color += digits[byte >> 4];
    color += digits[byte & 15];
  }
  return color;
}

/// One line of UTF-8 without control characters and characters that XML does not allow.
std::string drawn_text(std::string_view text) {
  std::string out = printable(valid_utf8(text), text.size() * 3);
  for (const std::string_view no_character : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = 0; (at = out.find(no_character, at)) != std::string::npos;) out[at + 2] = '\xbd';
  }
  return out;
}

/// The text's lines, each as `drawn_text`.
std::vector<std::string> drawn_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(drawn_text(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The lines of a node: label, op (unless it equals the label), calls.
std::vector<std::string> label_lines(const Drawing::Node& node) {
  std::vector<std::string> lines;
  for (const std::string* line : {&node.label, &node.op, &node.calls}) {
    const bool is_said = line == &node.op && node.op == node.label;
    if (!line->empty() && !is_said) lines.push_back(drawn_text(*line));
  }
  return lines;
}

/// One line inside of a quoted string: Graphviz reads backslashes as escapes, and names of HTML entities as entities.
std::string dot_escaped(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
    if (c == '&') out += "amp;";
  }
  return out;
}

std::string dot_quoted(const std::vector<std::string>& lines) {
  std::string out = "\"";
  for (std::size_t i = 0; i < lines.size(); ++i) out += str_cat(i == 0 ? "" : "\\n", dot_escaped(lines[i]));
  return out + '"';
}
std::string dot_quoted(std::string_view text) { return dot_quoted(drawn_lines(text)); }

class DotWriter {
 public:
  explicit DotWriter(const Drawing& drawing) : drawing_(drawing), boxes_(drawing.boxes.size()), nodes_(boxes_.size()) {
    for (std::size_t i = 0; i < drawing.boxes.size(); ++i) {
      const std::int32_t parent = drawing.boxes[i].parent;
      (parent < 0 ? outer_boxes_ : boxes_[static_cast<std::size_t>(parent)]).push_back(i);
    }
    for (std::size_t i = 0; i < drawing.nodes.size(); ++i) {
      const std::int32_t box = drawing.nodes[i].box;
      (box < 0 ? outer_nodes_ : nodes_[static_cast<std::size_t>(box)]).push_back(i);
    }
  }

  std::string write() {
    out_ = "digraph dflow {\n";
    out_ += "  graph [fontname=\"Helvetica\", fontsize=11, labelloc=t, ranksep=0.4, nodesep=0.25, newrank=true];\n";
    out_ +=
        "  node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", fillcolor=\"#f6f6f6\", "
        "height=0.3];\n";
    out_ += "  edge [fontname=\"Helvetica\", fontsize=8, arrowsize=0.6, color=\"#606060\"];\n";
    std::string title = drawing_.title;
    if (!drawing_.note.empty()) title += str_cat(title.empty() ? "" : "\n", drawing_.note);
    if (!title.empty()) out_ += str_cat("  label=", dot_quoted(title), ";\n");
    for (const std::size_t node : outer_nodes_) write_node(node);
    write_boxes();
    for (const Drawing::Edge& edge : drawing_.edges) write_edge(edge);
    write_legend();
    return std::move(out_) + "}\n";
  }

 private:
  void indent(std::size_t depth) { out_.append(2 * depth + 2, ' '); }

  /// With a stack of its own: boxes may be nested as deeply as names are.
  void write_boxes() {
    struct Open {
      const std::vector<std::size_t>* boxes;
      std::size_t next;
    };
    std::vector<Open> open{{&outer_boxes_, 0}};
    while (true) {
      Open& top = open.back();
      if (top.next < top.boxes->size()) {
        const std::size_t box = (*top.boxes)[top.next++];
        begin_box(box, open.size() - 1);
        open.push_back({&boxes_[box], 0});
        continue;
      }
      open.pop_back();
      if (open.empty()) return;
      indent(open.size() - 1);
      out_ += "}\n";
    }
  }

  void begin_box(std::size_t box, std::size_t depth) {
    constexpr std::string_view styles[] = {"style=rounded, color=\"#a0a0a0\"",
                                           "style=\"rounded,bold\", color=\"#7050a0\", fontcolor=\"#7050a0\"",
                                           "style=\"rounded,dashed,bold\", color=\"#404040\""};
    indent(depth);
    out_ += str_cat("subgraph cluster_", box, " {\n");
    indent(depth + 1);
    out_ += str_cat("graph [label=", dot_quoted(drawing_.boxes[box].label), ", ",
                    styles[static_cast<std::size_t>(drawing_.boxes[box].kind)], "];\n");
    for (const std::size_t node : nodes_[box]) {
      out_.append(2 * depth + 2, ' ');
      write_node(node);
    }
  }

  void write_node(std::size_t number) {
    const Drawing::Node& node = drawing_.nodes[number];
    out_ += str_cat("  n", number, " [label=", dot_quoted(label_lines(node)));
    if (!node.tooltip.empty()) out_ += str_cat(", tooltip=", dot_quoted(node.tooltip));
    if (node.device >= 0) {
      out_ += str_cat(", fillcolor=\"", device_color(static_cast<std::size_t>(node.device)), '"');
    }
    if (node.kind == Drawing::Node::Kind::source) out_ += ", shape=ellipse, style=filled";
    if (node.kind == Drawing::Node::Kind::state) out_ += ", penwidth=2, style=filled";
    if (node.kind == Drawing::Node::Kind::scope) out_ += ", peripheries=2";
    out_ += "];\n";
  }

  void write_edge(const Drawing::Edge& edge) {
    out_ += str_cat("  n", edge.from, " -> n", edge.to);
    std::string label = edge.label;
    if (edge.count > 1 && edge.kind == Drawing::Edge::Kind::data) label += str_cat(" x", edge.count);
    std::string attributes;
    if (!label.empty()) attributes = str_cat("label=", dot_quoted(label), ", ");
    attributes += str_cat("tooltip=", dot_quoted(edge_tooltip(edge)));
    if (edge.kind == Drawing::Edge::Kind::control) attributes += ", style=dashed";
    if (edge.kind == Drawing::Edge::Kind::transfer) attributes += ", color=\"#c03030\", penwidth=2, constraint=false";
    out_ += str_cat(" [", attributes, "];\n");
  }

  /// "split:1 to y": an output of a node, and its reader.
  std::string edge_tooltip(const Drawing::Edge& edge) const {
    const std::string& from = drawing_.nodes[static_cast<std::size_t>(edge.from)].label;
    const std::string& to = drawing_.nodes[static_cast<std::size_t>(edge.to)].label;
    return str_cat(from, edge.output > 0 ? str_cat(':', edge.output) : std::string(), " to ", to);
  }

  void write_legend() {
    if (drawing_.devices.empty()) return;
    out_ += "  subgraph cluster_legend {\n    graph [label=\"devices\", style=solid, color=\"#d0d0d0\"];\n";
    for (std::size_t i = 0; i < drawing_.devices.size(); ++i) {
      out_ += str_cat("    d", i, " [label=", dot_quoted(drawing_.devices[i]),
                      ", shape=box, style=filled, fillcolor=\"", device_color(i), "\"];\n");
    }
    out_ += "  }\n";
  }

  const Drawing& drawing_;
  std::vector<std::vector<std::size_t>> boxes_, nodes_;  ///< in each box
  std::vector<std::size_t> outer_boxes_, outer_nodes_;
  std::string out_;
};

}  // namespace detail

std::string to_dot(const Drawing& drawing) {
  detail::check_drawing(drawing);
  return detail::DotWriter(drawing).write();
}

}  // namespace dflow
