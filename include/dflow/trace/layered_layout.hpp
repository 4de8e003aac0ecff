#pragma once

#include <dflow/trace/drawing.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Lengths are pixels; y grows downwards.
struct DrawnPoint {
  double x = 0;
  double y = 0;
};
struct DrawnRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Sizes that a layout is told.
struct LayoutSizes {
  std::vector<DrawnRect> nodes;    ///< width and height, with the labels below
  std::vector<double> box_labels;  ///< widths
};

struct Layout {
  std::vector<DrawnRect> nodes;
  std::vector<DrawnRect> boxes;
  /// What each edge passes between its ends, in its direction.
  std::vector<std::vector<DrawnPoint>> bends;
  double width = 0;
  double height = 0;
};

/// Puts nodes into layers so that edges lead downwards, box by box from the innermost on (Sugiyama, Tagawa, Toda 1981):
/// an edge between two boxes counts where the two lie side by side. Edges of a cycle that lead back, in the order of
/// the nodes, do not count. Time is linear in nodes and edges but for sorting, and in the layers that edges pass.
///
/// Precondition: `check_drawing` has passed.
Layout layered_layout(const Drawing& drawing, const LayoutSizes& sizes);

}  // namespace dflow::detail
