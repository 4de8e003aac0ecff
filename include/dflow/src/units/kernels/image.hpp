#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/image.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ImageOps, Cpu);

}  // namespace dflow
