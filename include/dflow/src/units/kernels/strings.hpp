#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/strings.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(StringsOps, Cpu);

}  // namespace dflow
