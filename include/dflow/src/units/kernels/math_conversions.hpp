#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/math.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ConversionOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(ComplexOps, Cpu);

}  // namespace dflow
