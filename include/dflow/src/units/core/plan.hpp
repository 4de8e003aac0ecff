#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/runtime/plan/plan.ipp>
#include <dflow/runtime/plan/plan_constants.ipp>
#include <dflow/runtime/plan/plan_joins.ipp>
#include <dflow/runtime/plan/plan_kernels.ipp>
#include <dflow/runtime/plan/plan_units.ipp>
