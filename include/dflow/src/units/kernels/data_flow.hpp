#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/data_flow.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(DataFlowOps, Cpu);

}  // namespace dflow
