#pragma once

/// CPU kernels of the standard op table.

#include <dflow/src/bodies/send_recv.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SendRecvOps, Cpu);

}  // namespace dflow
