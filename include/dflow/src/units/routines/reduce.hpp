#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/math/reduce.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_SUMS(T)                                                                 \
  template void reduce_sum<T>(ThreadPool&, const ReduceShape&, const T*, T*, const CpuOptions&);  \
  template void reduce_mean<T>(ThreadPool&, const ReduceShape&, const T*, T*, const CpuOptions&); \
  template void reduce_prod<T>(ThreadPool&, const ReduceShape&, const T*, T*, const CpuOptions&);
#define DFLOW_INSTANTIATE_REDUCTIONS(T)                                                                               \
  DFLOW_INSTANTIATE_SUMS(T)                                                                                           \
  template void reduce_max<T>(ThreadPool&, const ReduceShape&, const T*, T*, const CpuOptions&);                      \
  template void reduce_min<T>(ThreadPool&, const ReduceShape&, const T*, T*, const CpuOptions&);                      \
  template void argmax<T, std::int32_t>(ThreadPool&, const ReduceShape&, const T*, std::int32_t*, const CpuOptions&); \
  template void argmax<T, std::int64_t>(ThreadPool&, const ReduceShape&, const T*, std::int64_t*, const CpuOptions&); \
  template void argmin<T, std::int32_t>(ThreadPool&, const ReduceShape&, const T*, std::int32_t*, const CpuOptions&); \
  template void argmin<T, std::int64_t>(ThreadPool&, const ReduceShape&, const T*, std::int64_t*, const CpuOptions&);

DFLOW_INSTANTIATE_REDUCTIONS(float)
DFLOW_INSTANTIATE_REDUCTIONS(double)
DFLOW_INSTANTIATE_REDUCTIONS(Half)
DFLOW_INSTANTIATE_REDUCTIONS(BFloat16)
DFLOW_INSTANTIATE_REDUCTIONS(std::int8_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::int16_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::int32_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::int64_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::uint8_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::uint16_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::uint32_t)
DFLOW_INSTANTIATE_REDUCTIONS(std::uint64_t)
DFLOW_INSTANTIATE_SUMS(std::complex<float>)
DFLOW_INSTANTIATE_SUMS(std::complex<double>)
template float sum_of_squares<float>(ThreadPool&, std::int64_t, const float*, const CpuOptions&);
template double sum_of_squares<double>(ThreadPool&, std::int64_t, const double*, const CpuOptions&);
template Half sum_of_squares<Half>(ThreadPool&, std::int64_t, const Half*, const CpuOptions&);
template BFloat16 sum_of_squares<BFloat16>(ThreadPool&, std::int64_t, const BFloat16*, const CpuOptions&);

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_SUMS
#undef DFLOW_INSTANTIATE_REDUCTIONS
