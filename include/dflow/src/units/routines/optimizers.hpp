#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/state/optimizers.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_SPARSE_UPDATES(T, Index)                                                                   \
  template void sparse_apply_gradient_descent<T, Index>(ThreadPool&, std::int64_t, std::int64_t, T*, T, const T*,    \
                                                        const Index*, const CpuOptions&);                            \
  template void sparse_apply_momentum<T, Index>(ThreadPool&, std::int64_t, std::int64_t, T*, T*, T, const T*,        \
                                                const Index*, T, bool, const CpuOptions&);                           \
  template void sparse_apply_adam<T, Index>(ThreadPool&, std::int64_t, std::int64_t, T*, T*, T*, const AdamStep<T>&, \
                                            const T*, const Index*, const CpuOptions&);
#define DFLOW_INSTANTIATE_UPDATES(T)                                                                                   \
  template void apply_gradient_descent<T>(ThreadPool&, std::int64_t, T*, T, const T*, const CpuOptions&);              \
  template void apply_momentum<T>(ThreadPool&, std::int64_t, T*, T*, T, const T*, T, bool, const CpuOptions&);         \
  template void apply_adam<T>(ThreadPool&, std::int64_t, T*, T*, T*, const AdamStep<T>&, const T*, const CpuOptions&); \
  DFLOW_INSTANTIATE_SPARSE_UPDATES(T, std::int32_t)                                                                    \
  DFLOW_INSTANTIATE_SPARSE_UPDATES(T, std::int64_t)

DFLOW_INSTANTIATE_UPDATES(float)
DFLOW_INSTANTIATE_UPDATES(double)
DFLOW_INSTANTIATE_UPDATES(Half)
DFLOW_INSTANTIATE_UPDATES(BFloat16)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_SPARSE_UPDATES
#undef DFLOW_INSTANTIATE_UPDATES
