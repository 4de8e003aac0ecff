#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/pool2d.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_MAX_POOL(T) \
  template void max_pool<T>(ThreadPool&, const Pool2dShape&, const T*, T*, const CpuOptions&);
#define DFLOW_INSTANTIATE_POOL(T)                                                                                 \
  DFLOW_INSTANTIATE_MAX_POOL(T)                                                                                   \
  template void max_pool_backward<T>(ThreadPool&, const Pool2dShape&, const T*, const T*, T*, const CpuOptions&); \
  template void avg_pool<T>(ThreadPool&, const Pool2dShape&, const T*, T*, const CpuOptions&);                    \
  template void avg_pool_backward<T>(ThreadPool&, const Pool2dShape&, const T*, T*, const CpuOptions&);

DFLOW_INSTANTIATE_POOL(float)
DFLOW_INSTANTIATE_POOL(double)
DFLOW_INSTANTIATE_POOL(Half)
DFLOW_INSTANTIATE_POOL(BFloat16)
DFLOW_INSTANTIATE_MAX_POOL(std::int8_t)
DFLOW_INSTANTIATE_MAX_POOL(std::int16_t)
DFLOW_INSTANTIATE_MAX_POOL(std::int32_t)
DFLOW_INSTANTIATE_MAX_POOL(std::int64_t)
DFLOW_INSTANTIATE_MAX_POOL(std::uint8_t)
DFLOW_INSTANTIATE_MAX_POOL(std::uint16_t)
DFLOW_INSTANTIATE_MAX_POOL(std::uint32_t)
DFLOW_INSTANTIATE_MAX_POOL(std::uint64_t)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_MAX_POOL
#undef DFLOW_INSTANTIATE_POOL
