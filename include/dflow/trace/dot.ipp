#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/trace/dot.hpp>
#include <dflow/trace/drawing_parts.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

/// One line inside of a quoted string: Graphviz takes backslashes for escapes, and names of HTML entities for those.
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
    if (!label.empty()) attributes = str_cat("label=", dot_quoted(label));
    if (edge.kind == Drawing::Edge::Kind::control)
      attributes += str_cat(attributes.empty() ? "" : ", ", "style=dashed");
    if (edge.kind == Drawing::Edge::Kind::transfer) {
      attributes += str_cat(attributes.empty() ? "" : ", ", "color=\"#c03030\", penwidth=2, constraint=false");
    }
    if (!attributes.empty()) out_ += str_cat(" [", attributes, ']');
    out_ += ";\n";
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
