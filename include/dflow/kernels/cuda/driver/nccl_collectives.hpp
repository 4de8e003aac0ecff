#pragma once

#include <dflow/kernels/cuda/driver/collectives.hpp>

namespace dflow::cuda {

/// NCCL, the same for all who ask, loaded when it is first needed; null where the component was built without it. In
/// the library's component `cuda`.
Collectives* nccl_collectives() noexcept;

}  // namespace dflow::cuda
