#pragma once

#include <dflow/runtime/plan/joined_nodes.hpp>
#include <dflow/runtime/plan/node_order.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_producers.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>

namespace dflow::detail {

/// Reorders the nodes inside each unit of `plan`, so that nodes with kernels that issue the same work for the same
/// shapes stand together (`gather_repeating`). For plans on a device that records.
void order_for_records(const PlanData& plan, NodeOrder& order, const JoinedNodes& joined, const NodeKernels& kernels,
                       const PlanProducers& producers);

/// Hands each stretch of them to the recorder of the device; `plan` keeps the records. For plans on a device that
/// records. Precondition: slots have their last names.
void record_stretches(PlanData& plan, const NodeOrder& order, const NodeKernels& kernels, const PlanSlots& slots);

}  // namespace dflow::detail
