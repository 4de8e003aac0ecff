#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/control.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ControlOps, Cpu);

}  // namespace dflow
