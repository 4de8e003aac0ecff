#pragma once

#include <dflow/trace/drawing.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::detail {

/// What the writers of drawings share.

/// Throws InvalidArgument unless all that the drawing's parts name is there, and boxes stand behind their parents.
void check_drawing(const Drawing& drawing);

/// A light colour for device `i`, "#rrggbb": hues a golden angle apart, so that those of the first devices are far from
/// each other.
std::string device_color(std::size_t i);

/// One line of UTF-8 without control characters and what XML has no characters for.
std::string drawn_text(std::string_view text);

/// The text's lines, each as `drawn_text`.
std::vector<std::string> drawn_lines(std::string_view text);

/// The first `max_bytes` or fewer, so that no character is cut in two, and an ellipsis if that is not all.
std::string cut_text(std::string_view text, std::size_t max_bytes);

/// The lines of a node: label, op unless that says the same, calls.
std::vector<std::string> label_lines(const Drawing::Node& node);

}  // namespace dflow::detail
