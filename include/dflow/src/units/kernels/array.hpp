#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/array.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ArrayOps, Cpu);

}  // namespace dflow
