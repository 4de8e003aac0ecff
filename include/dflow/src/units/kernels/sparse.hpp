#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/sparse.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SparseOps, Cpu);

}  // namespace dflow
