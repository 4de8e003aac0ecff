#pragma once

#include <dflow/kernels/cuda/driver/programs.hpp>

namespace dflow::cuda {

/// NVRTC, the same for all who ask, loaded when it is first needed; null where the component was built without it. In
/// the library's component `cuda`.
Programs* nvrtc_programs() noexcept;

}  // namespace dflow::cuda
