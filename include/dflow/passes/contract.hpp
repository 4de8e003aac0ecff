#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace dflow {

/// Nodes of a step in whose place something else is put, and how they hang together with the others.
///
/// Thread safety: a value type.
struct StepGroup {
  std::vector<StepNodeId> nodes;       ///< in the order of the step
  std::vector<StepEndpoint> inputs;    ///< what they read from outside, but for constants that wait for nothing
  std::vector<StepNodeId> controls;    ///< what they wait for outside
  std::vector<StepEndpoint> outputs;   ///< their edges that are read outside, or fetched
  std::vector<StepNodeId> waited_for;  ///< those of them that are waited for outside, or are targets
};

/// What stands for a group, in the new step.
struct StepReplacement {
  std::vector<StepEndpoint> outputs;   ///< for each of the group's
  std::vector<StepNodeId> waited_for;  ///< the same
};

/// Whether a constant may be copied to wherever it is read.
inline bool is_free_constant(const StepNode& node) {
  return node.op->role == OpRole::constant && node.num_controls == 0 && !node.is_fed_only;
}

/// Groups the nodes by their numbers, -1 for those that are in none; each list has each of its members once.
std::vector<StepGroup> find_groups(const StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of);

/// Puts something else in the place of each group: `replace` appends it to the new step, and is given the group's
/// number, and what its inputs and controls are there. The groups are not changed.
///
/// False, and the step is as it was, if a group waits for something that waits for it.
bool contract(StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of,
              std::span<const StepGroup> groups,
              FunctionRef<StepReplacement(StepGraph& fresh, std::size_t group, std::span<const StepEndpoint> inputs,
                                          std::span<const StepNodeId> controls)>
                  replace);

}  // namespace dflow
