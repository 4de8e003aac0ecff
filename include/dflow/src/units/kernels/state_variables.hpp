#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/state.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(VariableOps, Cpu);

}  // namespace dflow
