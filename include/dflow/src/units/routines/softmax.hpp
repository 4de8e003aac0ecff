#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/softmax.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_SPARSE_CROSS_ENTROPY(T, Index)                                                          \
  template std::int64_t sparse_softmax_cross_entropy<T, Index>(ThreadPool&, std::int64_t, std::int64_t, const T*, \
                                                               const Index*, T*, T*, const CpuOptions&);
#define DFLOW_INSTANTIATE_SOFTMAX(T)                                                                          \
  template void softmax<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, T*, const CpuOptions&);         \
  template void log_softmax<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, T*, const CpuOptions&);     \
  template void softmax_backward<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*, T*,          \
                                    const CpuOptions&);                                                       \
  template void log_softmax_backward<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*, T*,      \
                                        const CpuOptions&);                                                   \
  template void softmax_cross_entropy<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*, T*, T*, \
                                         const CpuOptions&);                                                  \
  DFLOW_INSTANTIATE_SPARSE_CROSS_ENTROPY(T, std::int32_t)                                                     \
  DFLOW_INSTANTIATE_SPARSE_CROSS_ENTROPY(T, std::int64_t)

DFLOW_INSTANTIATE_SOFTMAX(float)
DFLOW_INSTANTIATE_SOFTMAX(double)
DFLOW_INSTANTIATE_SOFTMAX(Half)
DFLOW_INSTANTIATE_SOFTMAX(BFloat16)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_SPARSE_CROSS_ENTROPY
#undef DFLOW_INSTANTIATE_SOFTMAX
