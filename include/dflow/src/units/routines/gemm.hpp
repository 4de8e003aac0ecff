#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/math/gemm.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_GEMM(T)                                                                                  \
  template void gemm<T>(ThreadPool&, bool, bool, std::int64_t, std::int64_t, std::int64_t, const T*, const T*, T*, \
                        const Epilogue<T>&, const CpuOptions&);                                                    \
  template void batched_gemm<T>(ThreadPool&, std::int64_t, const BatchStrides&, bool, bool, std::int64_t,          \
                                std::int64_t, std::int64_t, const T*, const T*, T*, const Epilogue<T>&,            \
                                const CpuOptions&);

DFLOW_INSTANTIATE_GEMM(float)
DFLOW_INSTANTIATE_GEMM(double)
DFLOW_INSTANTIATE_GEMM(Half)
DFLOW_INSTANTIATE_GEMM(BFloat16)
DFLOW_INSTANTIATE_GEMM(std::int8_t)
DFLOW_INSTANTIATE_GEMM(std::int16_t)
DFLOW_INSTANTIATE_GEMM(std::int32_t)
DFLOW_INSTANTIATE_GEMM(std::int64_t)
DFLOW_INSTANTIATE_GEMM(std::uint8_t)
DFLOW_INSTANTIATE_GEMM(std::uint16_t)
DFLOW_INSTANTIATE_GEMM(std::uint32_t)
DFLOW_INSTANTIATE_GEMM(std::uint64_t)
DFLOW_INSTANTIATE_GEMM(std::complex<float>)
DFLOW_INSTANTIATE_GEMM(std::complex<double>)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_GEMM
