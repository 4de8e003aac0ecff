#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/batch_norm.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_BATCH_NORM(T, P)                                                                             \
  template void batch_norm_training<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const P*, const P*, P, T*,   \
                                       P*, P*, const CpuOptions&);                                                     \
  template void batch_norm_inference<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const P*, const P*,         \
                                        const P*, const P*, P, T*, const CpuOptions&);                                 \
  template void batch_norm_training_backward<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*, const P*, \
                                                const P*, const P*, P, T*, P*, P*, const CpuOptions&);                 \
  template void batch_norm_inference_backward<T>(ThreadPool&, std::int64_t, std::int64_t, const T*, const T*,          \
                                                 const P*, const P*, const P*, P, T*, P*, P*, const CpuOptions&);

DFLOW_INSTANTIATE_BATCH_NORM(float, float)
DFLOW_INSTANTIATE_BATCH_NORM(double, double)
DFLOW_INSTANTIATE_BATCH_NORM(Half, float)
DFLOW_INSTANTIATE_BATCH_NORM(BFloat16, float)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_BATCH_NORM
