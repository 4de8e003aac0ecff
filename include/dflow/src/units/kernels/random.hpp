#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/random.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(RandomOps, Cpu);

}  // namespace dflow
