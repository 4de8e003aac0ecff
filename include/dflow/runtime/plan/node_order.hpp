#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/joined_nodes.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>
#include <dflow/runtime/plan/unit_graph.hpp>

namespace dflow::detail {

/// The node of the step at each place of a plan. The last node of a group stands for all of it.
using NodeOrder = IndexedVector<PlanNodeId, StepNodeId>;

/// Orders the nodes unit by unit, each unit in topological order, and tells the units of `plan` where theirs are.
NodeOrder order_nodes(PlanData& plan, const JoinedNodes& joined, const UnitOfNode& unit_of);

/// Fills in the nodes of `plan`: the kernel of each, and where it finds its inputs and puts its outputs.
void wire_nodes(PlanData& plan, const NodeOrder& order, const JoinedNodes& joined, const NodeKernels& kernels,
                const PlanSlots& slots);

}  // namespace dflow::detail
