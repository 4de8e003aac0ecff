#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/array/rows.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_SCATTER(T)                                                                      \
  template std::int64_t scatter_rows<T, std::int32_t>(ThreadPool&, ScatterOp, std::int64_t, std::int64_t, \
                                                      std::int64_t, const std::int32_t*, const T*, T*,    \
                                                      const CpuOptions&, const ScatterRows&);             \
  template std::int64_t scatter_rows<T, std::int64_t>(ThreadPool&, ScatterOp, std::int64_t, std::int64_t, \
                                                      std::int64_t, const std::int64_t*, const T*, T*,    \
                                                      const CpuOptions&, const ScatterRows&);
#define DFLOW_INSTANTIATE_SUM_DUPLICATES(T)                                                                          \
  template std::int64_t sum_duplicate_rows<T, std::int32_t>(                                                         \
      ThreadPool&, std::int64_t, std::int64_t, const std::int32_t*, const T*, std::int32_t*, T*, const CpuOptions&); \
  template std::int64_t sum_duplicate_rows<T, std::int64_t>(                                                         \
      ThreadPool&, std::int64_t, std::int64_t, const std::int64_t*, const T*, std::int64_t*, T*, const CpuOptions&);
#define DFLOW_INSTANTIATE_GATHER(Index)                                                                        \
  template std::int64_t find_bad_index<Index>(std::int64_t, const Index*, std::int64_t);                       \
  template std::int64_t gather_rows<Index>(ThreadPool&, std::int64_t, std::int64_t, std::int64_t, std::size_t, \
                                           const void*, const Index*, void*, const CpuOptions&);

DFLOW_INSTANTIATE_GATHER(std::int32_t)
DFLOW_INSTANTIATE_GATHER(std::int64_t)
DFLOW_INSTANTIATE_SUM_DUPLICATES(float)
DFLOW_INSTANTIATE_SUM_DUPLICATES(double)
DFLOW_INSTANTIATE_SUM_DUPLICATES(Half)
DFLOW_INSTANTIATE_SUM_DUPLICATES(BFloat16)
DFLOW_INSTANTIATE_SCATTER(float)
DFLOW_INSTANTIATE_SCATTER(double)
DFLOW_INSTANTIATE_SCATTER(Half)
DFLOW_INSTANTIATE_SCATTER(BFloat16)
DFLOW_INSTANTIATE_SCATTER(std::int8_t)
DFLOW_INSTANTIATE_SCATTER(std::int16_t)
DFLOW_INSTANTIATE_SCATTER(std::int32_t)
DFLOW_INSTANTIATE_SCATTER(std::int64_t)
DFLOW_INSTANTIATE_SCATTER(std::uint8_t)
DFLOW_INSTANTIATE_SCATTER(std::uint16_t)
DFLOW_INSTANTIATE_SCATTER(std::uint32_t)
DFLOW_INSTANTIATE_SCATTER(std::uint64_t)
DFLOW_INSTANTIATE_SCATTER(std::complex<float>)
DFLOW_INSTANTIATE_SCATTER(std::complex<double>)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_SCATTER
#undef DFLOW_INSTANTIATE_SUM_DUPLICATES
#undef DFLOW_INSTANTIATE_GATHER
