#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/bias.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_BIAS(T)                                                                                      \
  template void bias_add<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*, T*, bool, const CpuOptions&); \
  template void bias_add_channels_first<T>(ThreadPool&, std::int64_t, std::int64_t, std::int64_t, const T*, const T*,  \
                                           T*, const CpuOptions&);

DFLOW_INSTANTIATE_BIAS(float)
DFLOW_INSTANTIATE_BIAS(double)
DFLOW_INSTANTIATE_BIAS(Half)
DFLOW_INSTANTIATE_BIAS(BFloat16)
DFLOW_INSTANTIATE_BIAS(std::int8_t)
DFLOW_INSTANTIATE_BIAS(std::int16_t)
DFLOW_INSTANTIATE_BIAS(std::int32_t)
DFLOW_INSTANTIATE_BIAS(std::int64_t)
DFLOW_INSTANTIATE_BIAS(std::uint8_t)
DFLOW_INSTANTIATE_BIAS(std::uint16_t)
DFLOW_INSTANTIATE_BIAS(std::uint32_t)
DFLOW_INSTANTIATE_BIAS(std::uint64_t)
DFLOW_INSTANTIATE_BIAS(std::complex<float>)
DFLOW_INSTANTIATE_BIAS(std::complex<double>)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_BIAS
