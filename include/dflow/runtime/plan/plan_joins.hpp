#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace dflow::detail {

/// Which nodes of a plan run as one, and in which order nodes then come.
///
/// Nodes of one unit are joined, so that none waits for a tensor from elsewhere for which it did not wait before. They
/// have as many nodes that may be joined before them, on the longest way, as the others: what lies behind some of them
/// then lies before none of them, nor before others that are joined.
///
/// Thread safety: a value type.
struct PlanJoins {
  /// What joining needs to know of a node.
  struct Candidate {
    const JointKernel* kernel = nullptr;  ///< null: it runs alone
    std::int64_t held_bytes = 0;
  };

  /// `unit_of` says where nodes run, none for those that do not.
  static PlanJoins find(const StepGraph& graph, const IndexedVector<StepNodeId, Candidate>& candidates,
                        const IndexedVector<StepNodeId, UnitId>& unit_of);

  std::vector<std::vector<StepNodeId>> groups;  ///< each of two nodes or more, in the order of the step
  /// The nodes that run, each after what it waits for in its unit. The last of a group stands for all of it. Empty
  /// where there are no groups, and the order of the step is one.
  std::vector<StepNodeId> order;
  IndexedVector<StepNodeId, std::int32_t> group_of;  ///< -1: it runs alone
};

}  // namespace dflow::detail
