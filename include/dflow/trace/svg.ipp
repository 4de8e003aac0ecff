#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/trace/drawing_parts.hpp>
#include <dflow/trace/layered_layout.hpp>
#include <dflow/trace/svg.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

inline constexpr double svg_char_width =
    6.3;  ///< of most letters of a sans-serif font of 10 pixels, and more than that
inline constexpr double svg_line_height = 13;
inline constexpr double svg_small_char_width = 5.2;  ///< of 8 pixels
inline constexpr double svg_small_line_height = 10;
inline constexpr std::size_t svg_max_labels = 4;  ///< of the edges that leave a node

std::string xml_escaped(std::string_view line) {
  std::string out;
  for (const char c : line) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// In tenths of a pixel.
std::string svg_number(double value) {
  const auto tenths = static_cast<long long>(std::llround(value * 10));
  const long long rest = std::abs(tenths % 10);
  const std::string_view sign = tenths < 0 && tenths > -10 ? "-" : "";
  return rest == 0 ? str_cat(tenths / 10) : str_cat(sign, tenths / 10, '.', rest);
}

double drawn_width(std::string_view line, double char_width) {
  const auto characters =
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  return static_cast<double>(characters) * char_width;
}

class SvgWriter {
 public:
  explicit SvgWriter(const Drawing& drawing) : drawing_(drawing) { measure(); }

  std::string write() {
    layout_ = layered_layout(drawing_, sizes_);
    const double top = (drawing_.title.empty() ? 0 : 24) + (drawing_.note.empty() ? 0 : 16);
    const double legend = 24 + 18 * std::ceil(static_cast<double>(drawing_.devices.size()));
    double width = std::max(layout_.width, 320.0);
    width = std::max(width, drawn_width(drawing_.title, 1.3 * svg_char_width) + 2 * layout_padding);
    for (const std::string& device : drawing_.devices) {
      width = std::max(width, drawn_width(drawn_text(device), svg_char_width) + 80);
    }
    const double height = top + layout_.height + legend;
    out_ = str_cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", svg_number(width), "\" height=\"",
                   svg_number(height), "\" viewBox=\"0 0 ", svg_number(width), ' ', svg_number(height),
                   "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"10\">\n");
    write_head(width, height, top);
    out_ += str_cat("<g transform=\"translate(0 ", svg_number(top), ")\">\n");
    for (std::size_t i = 0; i < drawing_.boxes.size(); ++i) write_box(i);
    for (std::size_t i = 0; i < drawing_.edges.size(); ++i) write_edge(i);
    for (std::size_t i = 0; i < drawing_.nodes.size(); ++i) write_node(i);
    out_ += "</g>\n";
    write_legend(top + layout_.height);
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr std::string_view edge_styles[] = {
      "stroke=\"#707070\" marker-end=\"url(#a)\"", "stroke=\"#707070\" stroke-dasharray=\"4 3\" marker-end=\"url(#a)\"",
      "stroke=\"#c03030\" stroke-width=\"1.8\" stroke-opacity=\"0.7\" marker-end=\"url(#t)\""};

  /// Each node has room for its lines, and below for the labels of the edges that leave it.
  void measure() {
    labels_.resize(drawing_.nodes.size());
    for (const Drawing::Edge& edge : drawing_.edges) {
      if (edge.label.empty() || edge.kind == Drawing::Edge::Kind::transfer) continue;
      std::vector<std::string>& labels = labels_[static_cast<std::size_t>(edge.from)];
      const std::string label = drawn_text(edge.label);
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    }
    for (std::size_t i = 0; i < drawing_.nodes.size(); ++i) {
      const std::vector<std::string> lines = label_lines(drawing_.nodes[i]);
      double width = 30;
      for (const std::string& line : lines) width = std::max(width, drawn_width(line, svg_char_width) + 14);
      bodies_.push_back(
          {0, 0, width, svg_line_height * static_cast<double>(std::max<std::size_t>(1, lines.size())) + 6});
      if (labels_[i].size() > svg_max_labels) {
        const std::size_t more = labels_[i].size() - (svg_max_labels - 1);
        labels_[i].resize(svg_max_labels - 1);
        labels_[i].push_back(str_cat(more, " more"));
      }
      DrawnRect rect = bodies_.back();
      for (const std::string& label : labels_[i]) {
        rect.width = std::max(rect.width, drawn_width(label, svg_small_char_width));
      }
      rect.height += svg_small_line_height * static_cast<double>(labels_[i].size());
      sizes_.nodes.push_back(rect);
    }
    for (const Drawing::Box& box : drawing_.boxes) {
      sizes_.box_labels.push_back(drawn_width(drawn_text(box.label), svg_char_width));
    }
  }

  void write_head(double width, double height, double top) {
    out_ += "<defs>";
    for (const auto& [id, color] : {std::pair("a", "#707070"), std::pair("t", "#c03030")}) {
      out_ +=
          str_cat("<marker id=\"", id,
                  "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
                  "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 1L8 4L0 7z\" fill=\"",
                  color, "\"/></marker>");
    }
    out_ += "</defs>\n";
    out_ += str_cat("<rect width=\"", svg_number(width), "\" height=\"", svg_number(height), "\" fill=\"#ffffff\"/>\n");
    if (!drawing_.title.empty()) {
      out_ += str_cat("<title>", xml_escaped(drawn_text(drawing_.title)), "</title>\n");
      write_text({layout_padding, 19}, drawn_text(drawing_.title), "font-size=\"13\" font-weight=\"bold\"");
    }
    if (!drawing_.note.empty()) {
      write_text({layout_padding, top - 3}, drawn_text(drawing_.note), "fill=\"#a00000\"");
    }
  }

  void write_text(DrawnPoint at, std::string_view text, std::string_view attributes) {
    out_ += str_cat("<text x=\"", svg_number(at.x), "\" y=\"", svg_number(at.y), "\" ", attributes, '>',
                    xml_escaped(text), "</text>\n");
  }

  std::string rect_text(const DrawnRect& rect) const {
    return str_cat("<rect x=\"", svg_number(rect.x), "\" y=\"", svg_number(rect.y), "\" width=\"",
                   svg_number(rect.width), "\" height=\"", svg_number(rect.height), '"');
  }

  void write_box(std::size_t number) {
    constexpr std::string_view fills[] = {
        "fill=\"#000000\" fill-opacity=\"0.03\" stroke=\"#a0a0a0\"",
        "fill=\"#7050a0\" fill-opacity=\"0.06\" stroke=\"#7050a0\" stroke-width=\"1.5\"",
        "fill=\"none\" stroke=\"#404040\" stroke-width=\"1.5\" stroke-dasharray=\"8 3\""};
    constexpr std::string_view texts[] = {"fill=\"#606060\"", "fill=\"#7050a0\" font-weight=\"bold\"",
                                          "fill=\"#404040\" font-weight=\"bold\""};
    const Drawing::Box& box = drawing_.boxes[number];
    const auto kind = static_cast<std::size_t>(box.kind);
    const DrawnRect& rect = layout_.boxes[number];
    out_ += str_cat(rect_text(rect), " rx=\"6\" ", fills[kind], "/>\n");
    write_text({rect.x + layout_padding, rect.y + 14}, drawn_text(box.label), texts[kind]);
  }

  /// What is drawn of a node itself, in the upper middle of its room.
  DrawnRect body_of(std::size_t number) const {
    const DrawnRect& room = layout_.nodes[number];
    DrawnRect body = bodies_[number];
    body.x = room.x + (room.width - body.width) / 2;
    body.y = room.y;
    return body;
  }

  void write_node(std::size_t number) {
    const Drawing::Node& node = drawing_.nodes[number];
    const DrawnRect rect = body_of(number);
    out_ += "<g>";
    if (!node.tooltip.empty()) {
      out_ += "<title>";
      for (const std::string& line : drawn_lines(node.tooltip)) out_ += xml_escaped(line) + "\n";
      out_ += "</title>";
    }
    const std::string fill = node.device >= 0 ? device_color(static_cast<std::size_t>(node.device)) : "#f6f6f6";
    if (node.kind == Drawing::Node::Kind::scope) {
      const DrawnRect around{rect.x - 2.5, rect.y - 2.5, rect.width + 5, rect.height + 5};
      out_ += str_cat(rect_text(around), " rx=\"7\" fill=\"#ffffff\" stroke=\"#505050\"/>");
    }
    const double radius = node.kind == Drawing::Node::Kind::source  ? rect.height / 2
                          : node.kind == Drawing::Node::Kind::state ? 0
                                                                    : 5;
    out_ += str_cat(rect_text(rect), " rx=\"", svg_number(radius), "\" fill=\"", fill, "\" stroke=\"#505050\"",
                    node.kind == Drawing::Node::Kind::state ? " stroke-width=\"2\"" : "", "/>\n");
    const double middle = rect.x + rect.width / 2;
    double y = rect.y + svg_line_height - 1;
    bool is_first = true;
    for (const std::string& line : label_lines(node)) {
      write_text({middle, y}, line,
                 is_first ? "text-anchor=\"middle\" font-weight=\"bold\"" : "text-anchor=\"middle\" fill=\"#404040\"");
      is_first = false;
      y += svg_line_height;
    }
    y = rect.y + rect.height + svg_small_line_height - 2;
    for (const std::string& label : labels_[number]) {
      const double width = drawn_width(label, svg_small_char_width);
      const DrawnRect behind{middle - width / 2, y - svg_small_line_height + 2, width, svg_small_line_height};
      out_ += str_cat(rect_text(behind), " fill=\"#ffffff\" fill-opacity=\"0.8\"/>");
      write_text({middle, y}, label, "text-anchor=\"middle\" font-size=\"8\" fill=\"#305080\"");
      y += svg_small_line_height;
    }
    out_ += "</g>\n";
  }

  void write_edge(std::size_t number) {
    const Drawing::Edge& edge = drawing_.edges[number];
    out_ +=
        str_cat("<path d=\"", path_of(number), "\" fill=\"none\" ", edge_styles[static_cast<std::size_t>(edge.kind)]);
    std::string tooltip = drawing_.nodes[static_cast<std::size_t>(edge.from)].label;
    if (edge.output > 0) tooltip += str_cat(':', edge.output);
    tooltip += str_cat(" to ", drawing_.nodes[static_cast<std::size_t>(edge.to)].label);
    if (!edge.label.empty()) tooltip += str_cat(", ", edge.label);
    if (edge.count > 1) tooltip += str_cat(" x", edge.count);
    out_ += str_cat("><title>", xml_escaped(drawn_text(tooltip)), "</title></path>\n");
  }

  std::string path_of(std::size_t number) const {
    const Drawing::Edge& edge = drawing_.edges[number];
    const DrawnRect from = body_of(static_cast<std::size_t>(edge.from)),
                    to = body_of(static_cast<std::size_t>(edge.to));
    const DrawnPoint start{from.x + from.width / 2, from.y + from.height}, end{to.x + to.width / 2, to.y - 1};
    if (end.y <= start.y) return side_path(from, to);
    std::vector<DrawnPoint> points{start};
    for (const DrawnPoint& bend : layout_.bends[number]) {
      if (bend.y > points.back().y && bend.y < end.y) points.push_back(bend);
    }
    points.push_back(end);
    std::string path = str_cat('M', svg_number(start.x), ' ', svg_number(start.y));
    for (std::size_t i = 1; i < points.size(); ++i) {
      const DrawnPoint a = points[i - 1], b = points[i];
      const double middle = (a.y + b.y) / 2;
      path += str_cat('C', svg_number(a.x), ' ', svg_number(middle), ' ', svg_number(b.x), ' ', svg_number(middle), ' ',
                      svg_number(b.x), ' ', svg_number(b.y));
    }
    return path;
  }

  /// Of an edge that does not lead downwards: around the right sides, or from side to side.
  static std::string side_path(const DrawnRect& from, const DrawnRect& to) {
    const bool is_apart = to.x > from.x + from.width + 20;
    const DrawnPoint start{from.x + from.width, from.y + from.height / 2};
    const DrawnPoint end{is_apart ? to.x - 1 : to.x + to.width + 1, to.y + to.height / 2};
    const double reach = 30 + std::min(80.0, std::abs(end.y - start.y) / 4);
    return str_cat('M', svg_number(start.x), ' ', svg_number(start.y), 'C', svg_number(start.x + reach), ' ',
                   svg_number(start.y), ' ', svg_number(is_apart ? end.x - reach : end.x + reach), ' ',
                   svg_number(end.y), ' ', svg_number(end.x), ' ', svg_number(end.y));
  }

  void write_legend(double y) {
    y += 12;
    double x = layout_padding;
    struct Sample {
      Drawing::Edge::Kind kind;
      std::string_view label;
    };
    for (const Sample& sample :
         {Sample{Drawing::Edge::Kind::data, "data"}, Sample{Drawing::Edge::Kind::control, "control"},
          Sample{Drawing::Edge::Kind::transfer, "sent"}}) {
      const bool is_there = std::any_of(drawing_.edges.begin(), drawing_.edges.end(),
                                        [&](const Drawing::Edge& edge) { return edge.kind == sample.kind; });
      if (!is_there) continue;
      out_ += str_cat("<path d=\"M", svg_number(x), ' ', svg_number(y - 3), "h24\" fill=\"none\" ",
                      edge_styles[static_cast<std::size_t>(sample.kind)], "/>\n");
      write_text({x + 30, y}, sample.label, "fill=\"#404040\"");
      x += 80;
    }
    for (std::size_t i = 0; i < drawing_.devices.size(); ++i) {
      y += 18;
      out_ += str_cat(rect_text({layout_padding, y - 10, 24, 12}), " fill=\"", device_color(i),
                      "\" stroke=\"#505050\"/>\n");
      write_text({layout_padding + 30, y}, drawn_text(drawing_.devices[i]), "fill=\"#404040\"");
    }
  }

  const Drawing& drawing_;
  LayoutSizes sizes_;
  Layout layout_;
  std::vector<DrawnRect> bodies_;
  std::vector<std::vector<std::string>> labels_;  ///< of the edges that leave each node
  std::string out_;
};

}  // namespace detail

std::string to_svg(const Drawing& drawing) {
  detail::check_drawing(drawing);
  return detail::SvgWriter(drawing).write();
}

}  // namespace dflow
