#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/checkpoint.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(CheckpointOps, Cpu);

}  // namespace dflow
