#pragma once

#include <memory>
#include <string>

namespace dflow {

struct StepGraph;

/// What one device runs of a step, after all passes: to be looked at, drawn (`trace/drawing.hpp`) and tested.
///
/// Thread safety: immutable, and valid whatever becomes of the session and its graph.
struct DeviceGraph {
  std::string device;
  std::shared_ptr<const StepGraph> graph;
};

}  // namespace dflow
