#pragma once

#include <dflow/graph/step_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// Where raw control flow becomes calls, if it has their form.
struct Raises {
  bool everywhere = false;
  /// By `StepNode::placed_on`: devices with a memory of their own, where frames would not find in the host's what they
  /// themselves, or kernels, read there.
  std::vector<bool> on_devices = {};

  bool is_own_memory(std::int32_t device) const {
    return device >= 0 && static_cast<std::size_t>(device) < on_devices.size() &&
           on_devices[static_cast<std::size_t>(device)];
  }
  bool on(std::int32_t device) const { return everywhere || is_own_memory(device); }
};

/// Puts one node in the place of each connected part of a step's graph that passes tensors on alive or dead: Switches,
/// Merges, frames, what lies between them, calls before them whose results may be dead, and what waits by a control
/// edge for something that may be dead, or calls what is on several devices with it. It calls that part, on the device
/// of its first node. What else reads what may be dead is passed over by the step.
///
/// A part with nodes that must be on other devices than its first one becomes calls instead (`raise_frames`), and so
/// does every part that can where the caller says that it `raises`.
///
/// Errors: InvalidArgument for fetches, feeds and targets inside of a frame; those of `lay_out_frames`; Unimplemented,
/// naming such a node, for a part on several devices that does not have the form of branches and loops.
void form_frames(StepGraph& step, const Raises& raises = {});

}  // namespace dflow
