#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/summary.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SummaryOps, Cpu);

}  // namespace dflow
