#pragma once

#include <dflow/runtime/plan/node_order.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/unit_graph.hpp>

namespace dflow::detail {

/// Decides when the tensor of each slot of `plan` is let go, and which nodes may write into their inputs.
void plan_releases(PlanData& plan, const NodeOrder& order, const UnitOfNode& unit_of, const PlanOptions& options);

/// Renames the slots of `plan`. Inside a unit, which is one frozen order, a slot can hold another output once its
/// tensor has been let go: few slots stay warm in the cache. A slot that another unit made or reads has a name of its
/// own.
///
/// Precondition: `plan_releases` has been called.
void reuse_slots(PlanData& plan);

/// Lists which slots of `plan` stay as they are after a run, which are emptied, and which fetches may be taken.
void list_cleared_slots(PlanData& plan, const PlanOptions& options);

}  // namespace dflow::detail
