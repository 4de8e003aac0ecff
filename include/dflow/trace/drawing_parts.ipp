#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/trace/drawing_parts.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace dflow::detail {

void check_drawing(const Drawing& drawing) {
  const auto check = [](std::int32_t number, std::int32_t least, std::size_t end, std::string_view what) {
    if (number >= least && (number < 0 || static_cast<std::size_t>(number) < end)) return;
    throw_error(invalid_argument(str_cat("a drawing with ", end, ' ', what, " names number ", number)));
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

std::string drawn_text(std::string_view text) {
  std::string out = printable(valid_utf8(text), text.size() * 3);
  for (const std::string_view no_character : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (std::size_t at = 0; (at = out.find(no_character, at)) != std::string::npos;) out[at + 2] = '\xbd';
  }
  return out;
}

std::vector<std::string> drawn_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(drawn_text(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(end)) --end;
  return str_cat(text.substr(0, end), "\xe2\x80\xa6");
}

std::vector<std::string> label_lines(const Drawing::Node& node) {
  std::vector<std::string> lines;
  for (const std::string* line : {&node.label, &node.op, &node.calls}) {
    const bool is_said = line == &node.op && node.op == node.label;
    if (!line->empty() && !is_said) lines.push_back(drawn_text(*line));
  }
  return lines;
}

}  // namespace dflow::detail
