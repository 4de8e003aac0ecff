#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/summary/summary.hpp>
#include <dflow/ops/summary/list.hpp>
