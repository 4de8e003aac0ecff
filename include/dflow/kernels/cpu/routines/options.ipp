#pragma once

#include <dflow/kernels/cpu/routines/options.hpp>

namespace dflow::cpu {

bool has_onednn() noexcept {
#if defined(DFLOW_HAS_ONEDNN)
  return true;
#else
  return false;
#endif
}

}  // namespace dflow::cpu
