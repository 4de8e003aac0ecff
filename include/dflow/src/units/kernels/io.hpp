#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/io.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(IoOps, Cpu);

}  // namespace dflow
