#pragma once

#include <dflow/kernels/cuda/driver/programs.hpp>

namespace dflow::cuda {

/// NVRTC, loaded when it is first needed: every caller gets the same object. Null if the component was built without
/// NVRTC. In the library's component `cuda`.
Programs* nvrtc_programs() noexcept;

}  // namespace dflow::cuda
