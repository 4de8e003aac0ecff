#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace dflow {

/// Nodes of a step that are to be replaced, and their connections to the other nodes.
///
/// Thread safety: a value type.
struct StepGroup {
  std::vector<StepNodeId> nodes;       ///< in the order of the step
  std::vector<StepEndpoint> inputs;    ///< edges read from outside, except constants that wait for nothing
  std::vector<StepNodeId> controls;    ///< nodes outside that they wait for
  std::vector<StepEndpoint> outputs;   ///< their edges that are read outside, or fetched
  std::vector<StepNodeId> waited_for;  ///< members that nodes outside wait for, or targets
};

/// The edges and nodes that stand for a group, in the new step.
struct StepReplacement {
  std::vector<StepEndpoint> outputs;   ///< for each of the group's
  std::vector<StepNodeId> waited_for;  ///< the same
};

/// Whether a constant may be copied to wherever it is read.
inline bool is_free_constant(const StepNode& node) {
  return node.op->role == OpRole::constant && node.num_controls == 0 && !node.is_fed_only;
}

/// Groups the nodes by their numbers, -1 for nodes in no group; each list has each of its members once.
std::vector<StepGroup> find_groups(const StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of);

/// Replaces each group: `replace` appends the replacement to the new step. It is given the group's number, and the
/// group's inputs and controls in the new step. The groups are not changed.
///
/// Returns false, and leaves the step as it was, if a group waits for a node that waits for the group.
bool contract(StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of,
              std::span<const StepGroup> groups,
              FunctionRef<StepReplacement(StepGraph& fresh, std::size_t group, std::span<const StepEndpoint> inputs,
                                          std::span<const StepNodeId> controls)>
                  replace);

}  // namespace dflow
