#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_joins.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/unit_graph.hpp>

#include <cstddef>
#include <vector>

namespace dflow::detail {

/// The groups of nodes that run as one, with a kernel for each.
///
/// Thread safety: a value type.
struct JoinedNodes {
  /// The kernel of a whole group, and a node that has the name of the first one.
  struct Joined {
    const AnyKernel* kernel = nullptr;
    const Node* node = nullptr;
    double cost_ns = 0;
  };

  PlanJoins joins;
  std::vector<Joined> joined;  ///< by group

  /// The group that a node belongs to; null if it runs alone.
  const std::vector<StepNodeId>* group_of(StepNodeId id) const {
    if (joins.groups.empty() || joins.group_of[id] < 0) return nullptr;
    return &joins.groups[static_cast<std::size_t>(joins.group_of[id])];
  }
  /// Precondition: the node belongs to a group.
  const Joined& joined_of(StepNodeId id) const { return joined[static_cast<std::size_t>(joins.group_of[id])]; }
  /// Calls `visit` for the nodes that run as one with this one, itself included.
  template <class F>
  void for_each_member(StepNodeId id, F&& visit) const {
    const std::vector<StepNodeId>* const group = group_of(id);
    if (group == nullptr) return visit(id);
    for (const StepNodeId member : *group) visit(member);
  }
};

/// Finds the groups (`PlanJoins`) and makes their kernels; `plan` keeps the nodes that stand for them. Errors: as the
/// functions that make kernels.
JoinedNodes join_nodes(PlanData& plan, PlanKernels& maker, const NodeKernels& kernels, const UnitOfNode& unit_of);

}  // namespace dflow::detail
