#pragma once

/// Public: drawings of graphs, as text for Graphviz.

#include <dflow/trace/drawing.hpp>

#include <string>

namespace dflow {

/// A drawing as text in Graphviz's language: `dot -Tsvg`, or `-Tpng`, lays it out. Boxes are clusters, control edges
/// are dashed, devices are colours with a legend. All names are escaped; bytes that are not UTF-8 become U+FFFD.
///
/// Thread safety: safe. Errors: InvalidArgument for a node, box or device that the drawing does not have, and for
/// boxes that do not come after their parents.
std::string to_dot(const Drawing& drawing);

}  // namespace dflow
