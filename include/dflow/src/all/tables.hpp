#pragma once

/// Public: the standard op table, which refers to all ops and kernels.

#include <dflow/src/units/tables/kernels.hpp>
#include <dflow/src/units/tables/ops.hpp>
