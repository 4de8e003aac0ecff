#pragma once

#include <dflow/graph/step_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// Where raw control flow becomes calls, if it has the form of calls.
struct Raises {
  bool everywhere = false;
  /// By `StepNode::placed_on`: devices with a memory of their own. Frames there would not find in host memory the
  /// tensors that the frames, or kernels, read in it.
  std::vector<bool> on_devices = {};

  bool is_own_memory(std::int32_t device) const {
    return device >= 0 && static_cast<std::size_t>(device) < on_devices.size() &&
           on_devices[static_cast<std::size_t>(device)];
  }
  bool on(std::int32_t device) const { return everywhere || is_own_memory(device); }
};

/// Puts one node in the place of each connected part of a step's graph that passes tensors on alive or dead. A part
/// consists of:
/// - Switches, Merges and frames, and the nodes between them;
/// - calls before them whose results may be dead;
/// - nodes that wait by a control edge for a node that may be dead;
/// - nodes that may be dead and call bodies on several devices.
/// The new node calls that part, on the device of its first node. The step passes over other readers of dead edges.
///
/// A part with nodes that must be on other devices than its first one becomes calls instead (`raise_frames`). If the
/// caller says that it `raises`, so does every other part that has the form of calls.
///
/// Errors: InvalidArgument for fetches, feeds and targets inside of a frame; the errors of `lay_out_frames`;
/// Unimplemented, naming a node, for a part on several devices that does not have the form of branches and loops.
void form_frames(StepGraph& step, const Raises& raises = {});

}  // namespace dflow
