#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/runtime/joins/plan_joins.ipp>
#include <dflow/runtime/plan.ipp>
#include <dflow/runtime/plan_constants.ipp>
#include <dflow/runtime/plan_kernels.ipp>
#include <dflow/runtime/plan_units.ipp>
