#pragma once

#include <dflow/trace/drawing.hpp>

#include <string>

namespace dflow {

/// A drawing as an SVG file that needs nothing else: any browser shows it, with tooltips. It is laid out in layers,
/// from inputs to results downwards, each box by itself (`trace/layered_layout.hpp`). The same drawing makes the same
/// bytes. Names are escaped, whatever they are; what is not UTF-8, or no character of XML, becomes U+FFFD.
///
/// Thread safety: safe. Errors: as `to_dot`.
std::string to_svg(const Drawing& drawing);

}  // namespace dflow
