#pragma once

#include <memory>
#include <string>

namespace dflow {

struct StepGraph;

/// The graph that one device runs in a step, after all passes: to be looked at, drawn (`trace/drawing.hpp`) and
/// tested.
///
/// Thread safety: immutable, and valid after the session and its graph are gone.
struct DeviceGraph {
  std::string device;
  std::shared_ptr<const StepGraph> graph;
};

}  // namespace dflow
