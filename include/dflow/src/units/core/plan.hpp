#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/runtime/plan/joined_nodes.ipp>
#include <dflow/runtime/plan/node_order.ipp>
#include <dflow/runtime/plan/plan.ipp>
#include <dflow/runtime/plan/plan_constants.ipp>
#include <dflow/runtime/plan/plan_joins.ipp>
#include <dflow/runtime/plan/plan_kernels.ipp>
#include <dflow/runtime/plan/plan_records.ipp>
#include <dflow/runtime/plan/plan_releases.ipp>
#include <dflow/runtime/plan/plan_slots.ipp>
#include <dflow/runtime/plan/plan_units.ipp>
#include <dflow/runtime/plan/unit_graph.ipp>
