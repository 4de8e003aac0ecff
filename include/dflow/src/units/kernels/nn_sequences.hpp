#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/nn.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SequenceOps, Cpu);

}  // namespace dflow
