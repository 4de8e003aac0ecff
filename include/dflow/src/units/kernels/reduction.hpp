#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/reduction.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ReductionOps, Cpu);

}  // namespace dflow
