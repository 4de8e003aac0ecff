#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace dflow::detail {

/// The nodes of a plan that run as one, and the order of the nodes then.
///
/// Joined nodes are in one unit, so no node waits for a tensor from elsewhere for which it did not wait before. Joined
/// nodes have the same level: the number of nodes before them that may be joined, on the longest way. Therefore a node
/// behind a member of a group lies before no member of that group, and before no other joined nodes of that level.
///
/// Thread safety: a value type.
struct PlanJoins {
  /// The facts that joining needs of a node.
  struct Candidate {
    const JointKernel* kernel = nullptr;  ///< null: it runs alone
    std::int64_t held_bytes = 0;
  };

  /// `unit_of` gives the unit of each node; it is invalid for nodes that do not run.
  static PlanJoins find(const StepGraph& graph, const IndexedVector<StepNodeId, Candidate>& candidates,
                        const IndexedVector<StepNodeId, UnitId>& unit_of);

  std::vector<std::vector<StepNodeId>> groups;  ///< each of two nodes or more, in the order of the step
  /// The nodes that run, each after the nodes of its unit that it waits for. The last node of a group stands for the
  /// group. Empty if there are no groups; the order of the step is valid then.
  std::vector<StepNodeId> order;
  IndexedVector<StepNodeId, std::int32_t> group_of;  ///< -1: it runs alone
};

}  // namespace dflow::detail
