#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/parsing.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ParsingOps, Cpu);

}  // namespace dflow
