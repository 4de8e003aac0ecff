#pragma once

#include <dflow/kernels/cuda/driver/collectives.hpp>

namespace dflow::cuda {

/// NCCL, loaded when it is first needed: every caller gets the same object. Null if the component was built without
/// NCCL. In the library's component `cuda`.
Collectives* nccl_collectives() noexcept;

}  // namespace dflow::cuda
