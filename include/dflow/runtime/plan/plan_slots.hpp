#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace dflow::detail {

/// The slots of a step: one for each output, and one more for each feed, which consumers read instead.
///
/// Thread safety: a value type.
struct PlanSlots {
  IndexedVector<StepNodeId, SlotId> first_output;  ///< the slot of each node's first output; others follow it
  SlotId first_feed;                               ///< the slot of the first feed; others follow it
  EdgePositions<StepNodeId> feeds;
  /// The inputs of a node that are wanted in host memory; empty on a device of host memory.
  IndexedVector<StepNodeId, std::vector<bool>> host_inputs;
  std::unordered_map<StepNodeId, SlotId> host_constants;  ///< constants that the host has as well

  SlotId of(StepEndpoint edge, bool on_host) const;
  bool wants_host(StepNodeId id, std::size_t input) const {
    return !host_inputs.empty() && !host_inputs[id].empty() && host_inputs[id][input];
  }
};

/// Assigns the slots of `plan` and puts the constants in theirs. Constants stay as they are in host memory. A device
/// with memory of its own gets copies, and one more slot for each constant that it reads in host memory.
///
/// Errors: as copies, with the node added; DeadlineExceeded and Cancelled as the options say; as `options.check`.
PlanSlots assign_slots(PlanData& plan, const NodeKernels& kernels, const PlanOptions& options);

}  // namespace dflow::detail
