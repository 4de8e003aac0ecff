#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_producers.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

namespace dflow::detail {

/// The unit of each node, none for nodes that do not run.
using UnitOfNode = IndexedVector<StepNodeId, UnitId>;

/// Makes the units of `plan` and describes them (`form_units`). A late feed is a unit as well.
UnitOfNode group_nodes(PlanData& plan, const NodeKernels& kernels, const PlanProducers& producers,
                       const PlanOptions& options);

/// Counts the units that each unit of `plan` waits for, and lists the units that wait for it.
void link_units(PlanData& plan, const PlanProducers& producers, const UnitOfNode& unit_of);

/// Lists which unit of `plan` makes each fetch, and the fetches that each unit makes. For plans that stream.
void place_fetches(PlanData& plan, const PlanSlots& slots, const UnitOfNode& unit_of);

}  // namespace dflow::detail
